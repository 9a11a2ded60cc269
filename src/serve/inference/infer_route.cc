#include "serve/inference/infer_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "http/query_fields.h"
#include "http/request_json.h"
#include "serve/inference/infer_answer.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

constexpr std::string_view kProbability = "probability", kSequenceInput = "sequence";
constexpr std::string_view kRowOutputs[] = {kProbability}, kItemOutputs[] = {"items", "scores"};

void AppendTensor(std::string_view name, std::string_view datatype, std::string_view shape,
                  bool first, std::string* out) {
  *out += first ? R"({"name":)" : R"(,{"name":)";
  http::AppendJsonString(name, out);
  fmt::format_to(std::back_inserter(*out), R"(,"datatype":"{}","shape":{}}})", datatype, shape);
}

void AppendRowTensors(const event::FeatureSchema& schema, std::string* out) {
  *out += R"("platform":"tacit_rows","inputs":[)";
  bool first = true;
  for (const event::DenseFeature& feature : schema.dense) {
    AppendTensor(feature.name, "FP32", "[-1]", first, out);
    first = false;
  }
  for (const event::CategoricalFeature& feature : schema.categorical) {
    AppendTensor(feature.name, "BYTES", feature.multi_hot ? "[-1,-1]" : "[-1]", first, out);
    first = false;
  }
  *out += R"(],"outputs":[)";
  AppendTensor(kProbability, "FP32", "[-1]", true, out);
  *out += "]";
}

void AppendItemTensors(std::string* out) {
  *out += R"("platform":"tacit_next_item","inputs":[)";
  AppendTensor(kSequenceInput, "BYTES", "[-1]", true, out);
  *out += R"(],"outputs":[)";
  AppendTensor(kItemOutputs[0], "BYTES", "[-1]", true, out);
  AppendTensor(kItemOutputs[1], "FP32", "[-1]", false, out);
  *out += "]";
}

// Reads {"NAME":true} or {"parameters":{"NAME":true}}; false where the body is empty or lacks it.
Result<bool> ReadFlag(std::string_view body, std::string_view name, bool in_parameters) {
  bool flag = false;
  if (body.empty()) return flag;
  const http::JsonKey keys[] = {{name, http::PlaceFor(&flag)}};
  const http::JsonParts parameters{.keys = keys, .key_word = "parameter"};
  const http::JsonKey outer[] = {{"parameters", {.object = &parameters}}};
  TACIT_RETURN_IF_ERROR(http::ReadSmallJson(body, in_parameters ? outer : keys));
  return flag;
}

}  // namespace

Status InferRoute::SequenceRules::Check(const Tensor& input) const {
  if (input.name != kSequenceInput)
    return http::BadRequest(http::UnknownName("input", input.name, std::span(&kSequenceInput, 1)));
  const auto refuse = [&](std::string_view what) {
    return http::BadRequest(fmt::format("input 'sequence' of {}: {}", model_, what));
  };
  if (input.datatype != Datatype::kBytes && !IsInteger(input.datatype))
    return refuse(
        fmt::format("datatype must be BYTES or an integer's, not {}", NameOf(input.datatype)));
  if (input.shape.size() != 1 && !(input.shape.size() == 2 && input.shape[0] == 1))
    return refuse(fmt::format("shape must be [n] or [1,n], not [{}]", fmt::join(input.shape, ",")));
  if (input.shape.back() > RecommendLimits().sequence_most)
    return refuse(fmt::format("more than {} items", RecommendLimits().sequence_most));
  return {};
}

InferRoute::InferRoute(const Services& services, const Versions& versions, Ready ready,
                       RowScoring* scoring, RecommendRoute* recommend, LoadedModels* loaded)
    : services_(services),
      versions_(versions),
      ready_(std::move(ready)),
      scoring_(*scoring),
      recommend_(*recommend),
      loaded_(*loaded) {
  for (size_t i = 0; i < services.models.size(); ++i) {
    const ScoringModel& model = services.models[i];
    models_.push_back({.name = model.promise.learner,
                       .index = model.index,
                       .place = i,
                       .rows = TensorRows(model.promise.learner, *model.transform),
                       .sequence = {}});
  }
  for (size_t i = 0; i < services.recommenders.size(); ++i) {
    const RecommendModel& model = services.recommenders[i];
    models_.push_back({.name = model.promise.learner,
                       .index = model.index,
                       .place = i,
                       .rows = {},
                       .sequence = SequenceRules(model.promise.learner)});
  }
}

void InferRoute::ServerLive(const http::Request&, http::Reply* reply) {
  reply->body = "{\"live\":true}\n";
}

void InferRoute::ServerMetadata(const http::Request&, http::Reply* reply) {
  reply->body = R"({"name":"tacit","version":)";
  http::AppendJsonString(services_.code_version, &reply->body);
  reply->body += ",\"extensions\":[\"binary_tensor_data\",\"model_repository\"]}\n";
}

void InferRoute::ServerReady(const http::Request&, http::Reply* reply) {
  if (const Status ready = ready_(); !ready) return http::SetFailure(ready.error(), reply);
  for (const Model& model : models_)
    if (const auto served = Served(model); !served)
      return http::SetServerFailure(served.error(), reply);
  reply->body = "{\"live\":true,\"ready\":true}\n";
}

Result<InferRoute::Model*> InferRoute::Find(std::string_view part) {
  TACIT_ASSIGN(const std::string name, http::PathText("the model", part));
  const auto at = std::ranges::find(models_, name, &Model::name);
  if (at != models_.end()) return &*at;
  std::vector<std::string_view> names;
  for (const Model& model : models_) names.push_back(model.name);
  return Fail(ErrorCode::kNotFound,
              fmt::format("{}; there is '{}'", http::UnknownName("model", name, names),
                          fmt::join(names, "', '")));
}

Result<uint64_t> InferRoute::CommitOf(const Model& model, const Answering& answering) const {
  TACIT_RETURN_IF_ERROR(loaded_.Check(model.index, model.name));
  if (model.sequence) {
    TACIT_ASSIGN(const auto served, recommend_.StateOf(model.place, answering));
    return served->version;
  }
  const auto& snapshot = answering.snapshot;
  if (snapshot == nullptr ||
      (snapshot->Dense(model.index) == nullptr && snapshot->Released(model.index) == nullptr))
    return Fail(NotYetCommitted(model.name));
  return snapshot->version().value;
}

Result<uint64_t> InferRoute::Served(const Model& model) const {
  return CommitOf(model, versions_.Serving());
}

std::vector<uint64_t> InferRoute::AllServed(const Model& model) const {
  std::vector<uint64_t> all;
  for (const Answering& answering : versions_.All())
    if (const auto commit = CommitOf(model, answering)) all.push_back(*commit);
  return all;
}

Result<std::optional<uint64_t>> InferRoute::VersionAsked(const http::Request& request,
                                                         const Model& model) {
  if (request.parts[1].empty()) return std::optional<uint64_t>();
  const auto version = http::WholeNumber("version", request.parts[1]);
  if (version) return std::optional<uint64_t>(*version);
  return Fail(ErrorCode::kNotFound,
              fmt::format("model '{}' has no version '{}': a version is the number of a commit",
                          model.name, request.parts[1].substr(0, 30)));
}

Result<uint64_t> InferRoute::Serving(const http::Request& request, const Model& model) const {
  TACIT_ASSIGN(const auto asked, VersionAsked(request, model));
  if (!asked) return Served(model);
  TACIT_ASSIGN(const Answering answering, versions_.Choose(asked, request));
  TACIT_ASSIGN(const uint64_t served, CommitOf(model, answering));
  if (*asked != served) return Fail(NoSuchVersion(model.name, *asked, served));
  return served;
}

void InferRoute::ModelMetadata(const http::Request& request, http::Reply* reply) {
  const Result<Model*> found = Find(request.parts[0]);
  if (!found) return http::SetFailure(found.error(), reply);
  const Model& model = **found;
  const auto serving = Serving(request, model);
  // A model is described before its first commit; a version is not there before.
  if (!serving && (!request.parts[1].empty() || serving.error().code != ErrorCode::kUnavailable))
    return http::SetFailure(serving.error(), reply);
  std::string& out = reply->body;
  out = R"({"name":)";
  http::AppendJsonString(model.name, &out);
  out += R"(,"versions":[)";
  if (serving) {
    const std::vector<uint64_t> all =
        request.parts[1].empty() ? AllServed(model) : std::vector<uint64_t>{*serving};
    for (const uint64_t version : all)
      out += fmt::format(R"({}"{}")", version == all.front() ? "" : ",", version);
  }
  out += "],";
  if (model.rows)
    AppendRowTensors(services_.models[model.place].transform->schema(), &out);
  else
    AppendItemTensors(&out);
  out += "}\n";
}

void InferRoute::ModelReady(const http::Request& request, http::Reply* reply) {
  const Result<Model*> found = Find(request.parts[0]);
  if (!found) return http::SetFailure(found.error(), reply);
  const auto serving = Serving(request, **found);
  if (!serving) return http::SetFailure(serving.error(), reply);
  reply->body = R"({"name":)";
  http::AppendJsonString((*found)->name, &reply->body);
  reply->body += ",\"ready\":true}\n";
}

void InferRoute::Infer(const http::Request& request, http::Reply* reply) {
  const Result<Model*> found = Find(request.parts[0]);
  if (!found) return http::SetFailure(found.error(), reply);
  Model* const model = *found;
  const auto version = VersionAsked(request, *model);
  if (!version) return http::SetFailure(version.error(), reply);
  const InputRules& rules = model->rows ? static_cast<const InputRules&>(*model->rows)
                                        : static_cast<const InputRules&>(*model->sequence);
  const auto prepare = [&]() -> Status {
    TACIT_RETURN_IF_ERROR(
        ReadInferRequest(request.body, request.Field(kJsonBytesField), rules, &request_));
    if (model->sequence) {
      TACIT_RETURN_IF_ERROR(CheckOutputs(request_, model->name, kItemOutputs));
      return ReadSequence(*model);
    }
    if (request_.count || request_.exclude_seen)
      return http::BadRequest(
          fmt::format("parameter \"{}\" is for models of the next item, {} scores rows",
                      request_.count ? "k" : "exclude_seen", model->name));
    TACIT_RETURN_IF_ERROR(CheckOutputs(request_, model->name, kRowOutputs));
    return model->rows->Read(request_.inputs, scoring_.batch());
  };
  if (const Status ready = prepare(); !ready) return http::SetFailure(ready.error(), reply);
  const auto answering = versions_.Choose(*version, request);
  if (!answering) return http::SetFailure(answering.error(), reply);
  CountedAnswer counted(*answering);
  const Status done = model->rows ? InferRows(*model, *version, *answering, reply)
                                  : InferItems(*model, *version, *answering, reply);
  if (done) return;
  counted.Failed();
  http::SetServerFailure(done.error(), reply);
}

Status InferRoute::InferRows(const Model& model, std::optional<uint64_t> version,
                             const Answering& answering, http::Reply* reply) {
  const auto& snapshot = answering.snapshot;
  if (snapshot == nullptr) return Fail(NotYetCommitted(model.name));
  const uint64_t served = snapshot->version().value;
  if (version && *version != served) {
    http::SetFailure(NoSuchVersion(model.name, *version, served), reply);
    return {};
  }
  TACIT_ASSIGN(const std::span<const float> scores, scoring_.Score(model.place, *snapshot));
  parameters_.clear();
  AppendParameters(*snapshot, services_.models[model.place].promise, &parameters_);
  const OutputTensor output{
      .name = kProbability, .shape = {scores.size()}, .numbers = scores, .texts = {}};
  WriteInferAnswer(request_, {model.name, served, parameters_}, std::span(&output, 1), reply);
  return {};
}

Status InferRoute::ReadSequence(const Model& model) {
  const RecommendLimits limits;
  const RecommendModel& recommender = services_.recommenders[model.place];
  items_ = {};
  items_.model = model.place;
  items_.exclude_seen = request_.exclude_seen.value_or(true);
  if (request_.count) {
    if (*request_.count < 1 || *request_.count > limits.count_most)
      return http::BadRequest(
          fmt::format("parameter \"k\" must be a whole number from 1 to {}", limits.count_most));
    items_.count = static_cast<uint32_t>(*request_.count);
  }
  TensorReader reader(request_.inputs[0]);
  const uint64_t length = *request_.inputs[0].elements();
  for (uint64_t i = 0; i < length; ++i) {
    Status added =
        AddItem(*recommender.items, limits, reader.Text(), &items_.sequence, &items_.unknown_items);
    if (!added)
      return Fail(std::move(added.error()).Context(fmt::format("input 'sequence', element {}", i)));
  }
  return {};
}

Status InferRoute::InferItems(const Model& model, std::optional<uint64_t> version,
                              const Answering& answering, http::Reply* reply) {
  TACIT_ASSIGN(const auto served, recommend_.StateOf(model.place, answering));
  if (version && *version != served->version) {
    http::SetFailure(NoSuchVersion(model.name, *version, served->version), reply);
    return {};
  }
  TACIT_ASSIGN(const auto ranked, recommend_.Rank(items_, answering, *served));
  const event::ItemCatalogue& catalogue = *services_.recommenders[model.place].items;
  OutputTensor items{
      .name = kItemOutputs[0], .shape = {}, .is_text = true, .numbers = {}, .texts = {}};
  std::vector<float> scores;
  for (const RankedItem& item : ranked) {
    items.texts.push_back(catalogue.Name(item.item));
    scores.push_back(item.score);
  }
  if (request_.inputs[0].shape.size() == 2) items.shape.push_back(1);
  items.shape.push_back(scores.size());
  const OutputTensor numbers{
      .name = kItemOutputs[1], .shape = items.shape, .numbers = scores, .texts = {}};
  parameters_ = served->parameters;
  fmt::format_to(std::back_inserter(parameters_), R"(,"covered_by_epsilon":{},"unknown_items":{})",
                 served->is_private, items_.unknown_items.size());
  const OutputTensor outputs[] = {std::move(items), numbers};
  WriteInferAnswer(request_, {model.name, served->version, parameters_}, outputs, reply);
  return {};
}

void InferRoute::AppendIndexEntry(const Model& model, const Answering& answering,
                                  std::string* out) const {
  const auto served = CommitOf(model, answering);
  *out += R"({"name":)";
  http::AppendJsonString(model.name, out);
  if (served) {
    fmt::format_to(std::back_inserter(*out), R"(,"version":"{}","state":"READY","reason":""}})",
                   *served);
    return;
  }
  *out += R"(,"state":"UNAVAILABLE","reason":)";
  // Other failures may name files, and are described in the log.
  const bool may_tell = served.error().code == ErrorCode::kUnavailable;
  http::AppendJsonString(may_tell ? served.error().message : "its state cannot be served", out);
  *out += '}';
}

void InferRoute::Index(const http::Request& request, http::Reply* reply) {
  const auto ready_only = ReadFlag(request.body, "ready", /*in_parameters=*/false);
  if (!ready_only) return http::SetFailure(ready_only.error(), reply);
  reply->body = "[";
  const std::vector<Answering> all = versions_.All();
  for (const Model& model : models_) {
    for (const Answering& answering : all) {
      if (*ready_only && !CommitOf(model, answering)) continue;
      if (reply->body.size() > 1) reply->body += ',';
      AppendIndexEntry(model, answering, &reply->body);
    }
  }
  reply->body += "]\n";
}

void InferRoute::SetLoaded(const http::Request& request, bool load, http::Reply* reply) {
  const auto run = [&]() -> Status {
    TACIT_ASSIGN(Model* const model, Find(request.parts[0]));
    TACIT_RETURN_IF_ERROR(
        ReadFlag(request.body, load ? "config" : "unload_dependents", /*in_parameters=*/true));
    if (!services_.repository)
      return Fail(ErrorCode::kRefused,
                  fmt::format("this daemon trains '{}', and serves what it commits: models are "
                              "loaded and unloaded where tacitd runs with --serve-only",
                              model->name));
    if (load) TACIT_RETURN_IF_ERROR(services_.repository->move_on());
    loaded_.Set(model->index, load);
    AppendIndexEntry(*model, versions_.Serving(), &reply->body);
    reply->body += '\n';
    return {};
  };
  const Status done = run();
  if (!done) http::SetFailure(done.error(), reply);
}

}  // namespace tacit::serve
