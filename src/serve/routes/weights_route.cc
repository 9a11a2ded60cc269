#include "serve/routes/weights_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "http/query_fields.h"
#include "serve/scoring/linear_weights.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

constexpr uint64_t kTopMost = 100'000;

struct Asked {
  std::string learner;
  WeightsAsked weights;
};

Result<Asked> ParseAsked(std::string_view query) {
  Asked asked;
  TACIT_RETURN_IF_ERROR(
      http::ForFields(query, [&](std::string_view name, const std::string& value) -> Status {
        if (name == "learner") {
          asked.learner = value;
        } else if (name == "column") {
          asked.weights.column = value;
        } else if (name == "top") {
          TACIT_ASSIGN(const uint64_t top, http::WholeNumber(name, value));
          asked.weights.most = std::min(top, kTopMost);
        } else {
          return Fail(
              ErrorCode::kInvalidArgument,
              fmt::format("unknown parameter '{}' (there are learner, column and top)", name));
        }
        return {};
      }));
  if (asked.learner.empty())
    return Fail(ErrorCode::kInvalidArgument, "learner is missing: /v1/weights?learner=ID");
  return asked;
}

Status Append(const std::vector<ScoringModel>& models,
              std::span<const http::LearnerElsewhere> elsewhere, const store::Snapshot& snapshot,
              std::string_view query, std::string* out) {
  TACIT_ASSIGN(const Asked asked, ParseAsked(query));
  const auto model = std::ranges::find_if(
      models, [&](const ScoringModel& one) { return one.promise.learner == asked.learner; });
  const auto other = std::ranges::find(elsewhere, asked.learner, &http::LearnerElsewhere::name);
  if (other != elsewhere.end())
    return Fail(ErrorCode::kNotFound,
                fmt::format("'{}' is {}, which has no weights of values: ask {}", other->name,
                            other->what, other->route));
  if (model == models.end())
    return Fail(ErrorCode::kNotFound,
                fmt::format("no learner '{}' that scores rows", asked.learner));
  *out = "{";
  TACIT_RETURN_IF_ERROR(model->model->AppendWeights(snapshot, asked.weights, out));
  *out += R"(,"predicts":)";
  http::AppendJsonString(model->predicts, out);
  *out += ",";
  AppendModel(snapshot, model->promise, out);
  *out += "}\n";
  return {};
}

}  // namespace

void AnswerWeights(const std::vector<ScoringModel>& models,
                   std::span<const http::LearnerElsewhere> elsewhere,
                   const store::Snapshot& snapshot, std::string_view query, http::Reply* reply) {
  std::string body;
  const Status done = Append(models, elsewhere, snapshot, query, &body);
  if (done) {
    reply->body = std::move(body);
  } else if (done.error().code == ErrorCode::kCorruption || done.error().code == ErrorCode::kIo) {
    http::SetServerFailure(done.error(), reply);
  } else {
    http::SetFailure(done.error(), reply);
  }
}

}  // namespace tacit::serve
