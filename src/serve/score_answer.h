#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "event/batch.h"
#include "serve/http.h"
#include "serve/row_scorer.h"
#include "store/snapshot.h"

namespace tacit::serve {

// Scores a batch by the scorer of this model and writes the answer of POST /v1/score. Fails as
// RowScorer::Score does, with nothing written. `scores` is working memory that holds the scores
// afterwards.
Status AnswerScores(const store::Snapshot& snapshot, const ScoringModel& model,
                    const event::Batch& batch, RowScorer* scorer, std::vector<float>* scores,
                    std::string* answer);

// Answers from one snapshot, for callers without a server. 404: none of the models is this
// learner's.
Reply ScoreOnce(const std::vector<ScoringModel>& models, const store::Snapshot& snapshot,
                std::string_view learner, const event::Batch& batch);

}  // namespace tacit::serve
