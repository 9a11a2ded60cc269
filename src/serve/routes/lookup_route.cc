#include "serve/routes/lookup_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "http/request_json.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

constexpr size_t kLookupRowsMost = 4096, kLookupDepthMost = 4;
constexpr size_t kLookupRowBytesLeast = 24;  // of a row's text: {"feature":"f","bucket":0}

struct LookupRow {
  std::string feature;
  std::optional<std::string> value;
  std::optional<uint64_t> bucket;
};

struct LookupRequest {
  std::optional<std::string> learner;
  std::vector<LookupRow> rows;
};

// Reads {"learner":ID,"rows":[{"feature":NAME,"value":ID}|{"feature":NAME,"bucket":N},..]}.
Status ReadLookupRequest(std::string_view body, LookupRequest* request) {
  request->rows.reserve(std::min(kLookupRowsMost, body.size() / kLookupRowBytesLeast));
  LookupRow row;
  const auto where = [request] { return fmt::format("row {}", request->rows.size()); };
  const auto take_value = [&row](const http::JsonValue& value) {
    std::string digits;
    row.value = value.Id(&digits);
    return true;
  };
  const http::JsonKey row_keys[] = {
      {"feature", http::PlaceFor(&row.feature)},
      {"value", {.kind = http::JsonPlace::Kind::kId, .take = take_value}},
      {"bucket", http::PlaceFor(&row.bucket)}};
  const auto keep_row = [request, &row]() -> Status {
    if (row.feature.empty() || row.value.has_value() == row.bucket.has_value())
      return http::BadRequest(
          fmt::format("row {}: must have \"feature\", and either \"value\" or \"bucket\"",
                      request->rows.size()));
    request->rows.push_back(std::move(row));
    row = {};
    return {};
  };
  const http::JsonParts row_parts{.keys = row_keys, .end = keep_row, .where = where};
  const http::JsonParts rows{.element = {.must = "must hold objects", .object = &row_parts},
                             .elements_most = kLookupRowsMost,
                             .too_many = "more than {} rows in one request"};
  const http::JsonKey keys[] = {{"learner", http::PlaceFor(&request->learner)},
                                {"rows", {.array = &rows}, true}};
  return http::ReadJson(body, kLookupDepthMost, keys);
}

struct Found {
  std::string_view feature;
  uint64_t row = 0, bucket = 0;
  size_t begin = 0, width = 0;  // of its numbers
};

Result<Found> Locate(const ScoringModel& model, const LookupRow& row) {
  const auto& features = model.transform->schema().categorical;
  const auto at = std::ranges::find(features, row.feature, &event::CategoricalFeature::name);
  if (at == features.end()) {
    std::vector<std::string_view> names;
    for (const auto& feature : features) names.push_back(feature.name);
    return http::BadRequest(http::UnknownName("categorical feature", row.feature, names));
  }
  const auto feature = static_cast<size_t>(at - features.begin());
  Found found{.feature = at->name,
              .row = 0,
              .bucket = 0,
              .begin = 0,
              .width = model.model->RowWidth(feature)};
  if (found.width == 0) return http::BadRequest("the learner's model has no tables");
  const uint64_t first = model.transform->row_space().tables()[feature].first;
  if (row.bucket && *row.bucket >= at->buckets)
    return http::BadRequest(
        fmt::format("{} has buckets 0 to {}, not {}", at->name, at->buckets - 1, *row.bucket));
  found.row = row.bucket ? first + *row.bucket : model.transform->Row(feature, *row.value);
  found.bucket = found.row - first;
  return found;
}

// Reads the numbers of what was found: the store takes each row once, in ascending order.
Result<std::vector<float>> ReadNumbers(const store::Snapshot& snapshot, LearnerIndex learner,
                                       std::vector<Found>* found) {
  std::vector<Found*> order;
  order.reserve(found->size());
  for (Found& one : *found) order.push_back(&one);
  std::ranges::sort(order, {}, [](const Found* one) { return one->row; });
  std::vector<uint64_t> rows;
  rows.reserve(order.size());
  size_t size = 0;
  for (Found* one : order) {
    if (rows.empty() || rows.back() != one->row) {
      rows.push_back(one->row);
      size += one->width;
    }
    one->begin = size - one->width;
  }
  std::vector<float> numbers(size);
  TACIT_RETURN_IF_ERROR(snapshot.Rows(learner, rows, numbers));
  return numbers;
}

Result<size_t> ReadLookup(const std::vector<ScoringModel>& models,
                          std::span<const http::LearnerElsewhere> elsewhere,
                          const http::Request& request, std::vector<Found>* found) {
  LookupRequest asked;
  TACIT_RETURN_IF_ERROR(ReadLookupRequest(request.body, &asked));
  std::vector<std::string_view> learners;
  for (const ScoringModel& model : models) learners.push_back(model.promise.learner);
  TACIT_ASSIGN(const size_t model, http::FindLearner(asked.learner, learners, elsewhere));
  const ScoringModel& is = models[model];
  if (!std::isfinite(is.promise.epsilon) && request.role == http::Role::kPublic)
    return Fail(ErrorCode::kRefused,
                fmt::format("learner '{}' promises no privacy, so its rows are the operator's: "
                            "ask at serve.operator_listen",
                            is.promise.learner));
  found->reserve(asked.rows.size());
  for (size_t i = 0; i < asked.rows.size(); ++i) {
    auto one = Locate(is, asked.rows[i]);
    if (!one) return Fail(std::move(one.error()).Context(fmt::format("row {}", i)));
    found->push_back(*one);
  }
  return model;
}

}  // namespace

void AnswerLookup(const std::vector<ScoringModel>& models,
                  std::span<const http::LearnerElsewhere> elsewhere,
                  const store::Snapshot& snapshot, std::optional<uint64_t> version,
                  const http::Request& request, http::Reply* reply) {
  std::vector<Found> found;
  const auto model = ReadLookup(models, elsewhere, request, &found);
  if (!model) return http::SetFailure(model.error(), reply);
  const ScoringModel& is = models[*model];
  if (snapshot.Dense(is.index) == nullptr && snapshot.Released(is.index) == nullptr)
    return http::SetFailure(NotYetCommitted(is.promise.learner), reply);
  if (version && *version != snapshot.version().value)
    return http::SetFailure(NoSuchVersion(is.promise.learner, *version, snapshot.version().value),
                            reply);
  const auto numbers = ReadNumbers(snapshot, is.index, &found);
  if (!numbers) return http::SetServerFailure(numbers.error(), reply);
  std::string& out = reply->body;
  out = R"({"rows":[)";
  for (const Found& one : found) {
    out += &one == &found.front() ? R"({"feature":)" : R"(,{"feature":)";
    http::AppendJsonString(one.feature, &out);
    fmt::format_to(std::back_inserter(out), R"(,"bucket":{},"values":[)", one.bucket);
    for (size_t i = 0; i < one.width; ++i) {
      if (i > 0) out += ',';
      AppendNumber((*numbers)[one.begin + i], &out);
    }
    out += "]}";
  }
  out += "],";
  AppendModel(snapshot, is.promise, &out);
  out += "}\n";
}

}  // namespace tacit::serve
