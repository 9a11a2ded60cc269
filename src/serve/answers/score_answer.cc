#include "serve/answers/score_answer.h"

#include <algorithm>

#include "serve/answers/learner_kinds.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {

void WriteScores(const store::Snapshot& snapshot, const ScoringModel& model,
                 std::span<const float> scores, std::string* answer) {
  answer->reserve(scores.size() * 12 + 256);
  *answer = R"({"scores":[)";
  for (size_t i = 0; i < scores.size(); ++i) {
    if (i > 0) *answer += ',';
    AppendNumber(scores[i], answer);
  }
  *answer += R"(],"predicts":)";
  http::AppendJsonString(model.predicts, answer);
  *answer += ',';
  AppendModel(snapshot, model.promise, answer);
  *answer += "}\n";
}

http::Reply ScoreOnce(const std::vector<ScoringModel>& models, const store::Snapshot& snapshot,
                      std::string_view learner, const event::Batch& batch,
                      std::span<const RecommendModel> recommenders) {
  http::Reply reply;
  const auto model = std::ranges::find_if(
      models, [&](const ScoringModel& one) { return one.promise.learner == learner; });
  if (model == models.end()) {
    std::vector<std::string_view> names;
    for (const ScoringModel& one : models) names.push_back(one.promise.learner);
    const auto found = http::FindLearner(std::string(learner), names, AskedForItems(recommenders));
    http::SetFailure(found.error(), &reply);
    return reply;
  }
  const std::unique_ptr<RowScorer> scorer = model->model->MakeScorer();
  std::vector<float> scores(batch.size());
  const Status scored = scorer->Score(snapshot, batch, scores);
  if (!scored)
    http::SetServerFailure(scored.error(), &reply);
  else
    WriteScores(snapshot, *model, scores, &reply.body);
  return reply;
}

}  // namespace tacit::serve
