#include "serve/answers/learner_kinds.h"

#include <fmt/format.h>

namespace tacit::serve {
namespace {

// "a click model (linear)": the second word is model.kind of the configuration.
std::string KindText(std::string_view what, std::string_view kind) {
  return kind.empty() ? std::string(what) : fmt::format("{} ({})", what, kind);
}

}  // namespace

std::vector<http::LearnerElsewhere> AskedForScores(std::span<const ScoringModel> models) {
  std::vector<http::LearnerElsewhere> learners;
  for (const ScoringModel& model : models)
    learners.push_back(
        {model.promise.learner, KindText("a click model", model.model->kind()), "/v1/score"});
  return learners;
}

std::vector<http::LearnerElsewhere> AskedForItems(std::span<const RecommendModel> models) {
  std::vector<http::LearnerElsewhere> learners;
  for (const RecommendModel& model : models)
    learners.push_back({model.promise.learner, KindText("a next-item model", model.model->kind()),
                        "/v1/recommend"});
  return learners;
}

}  // namespace tacit::serve
