#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/batch.h"
#include "http/http.h"
#include "serve/items/recommender.h"
#include "serve/scoring/row_scorer.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// Writes the answer of POST /v1/score: scores of this model, and the model.
void WriteScores(const store::Snapshot& snapshot, const ScoringModel& model,
                 std::span<const float> scores, std::string* answer);

// Answers from one snapshot, for callers without a server. 404: none of the models is this
// learner's; `recommenders` are learners that score no rows.
http::Reply ScoreOnce(const std::vector<ScoringModel>& models, const store::Snapshot& snapshot,
                      std::string_view learner, const event::Batch& batch,
                      std::span<const RecommendModel> recommenders = {});

}  // namespace tacit::serve
