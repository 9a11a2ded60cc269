#include "serve/score_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "serve/model_json.h"

namespace tacit::serve {

Status AnswerScores(const store::Snapshot& snapshot, const ScoringModel& model,
                    const event::Batch& batch, RowScorer* scorer, std::vector<float>* scores,
                    std::string* answer) {
  scores->resize(batch.size());
  TACIT_RETURN_IF_ERROR(scorer->Score(snapshot, batch, *scores));
  answer->reserve(scores->size() * 12 + 256);
  *answer = R"({"scores":[)";
  for (size_t i = 0; i < scores->size(); ++i)
    fmt::format_to(std::back_inserter(*answer), "{}{}", i == 0 ? "" : ",", (*scores)[i]);
  *answer += "],";
  AppendModel(snapshot, model.promise, answer);
  *answer += "}\n";
  return {};
}

Reply ScoreOnce(const std::vector<ScoringModel>& models, const store::Snapshot& snapshot,
                std::string_view learner, const event::Batch& batch) {
  Reply reply;
  const auto model = std::ranges::find_if(
      models, [&](const ScoringModel& one) { return one.promise.learner == learner; });
  if (model == models.end()) {
    SetFailure({ErrorCode::kNotFound, fmt::format("no learner '{}'", learner)}, &reply);
    return reply;
  }
  const std::unique_ptr<RowScorer> scorer = model->model->MakeScorer();
  std::vector<float> scores;
  const Status scored = AnswerScores(snapshot, *model, batch, scorer.get(), &scores, &reply.body);
  if (!scored) SetServerFailure(scored.error(), &reply);
  return reply;
}

}  // namespace tacit::serve
