#pragma once

#include <span>
#include <vector>

#include "http/request_json.h"
#include "serve/items/recommender.h"
#include "serve/scoring/row_scorer.h"

// The learners that are asked at another route, as a route tells of them.
namespace tacit::serve {

// Learners that score rows, as the routes of recommendations see them.
std::vector<http::LearnerElsewhere> AskedForScores(std::span<const ScoringModel> models);
// Learners that recommend, as the routes of rows see them.
std::vector<http::LearnerElsewhere> AskedForItems(std::span<const RecommendModel> models);

}  // namespace tacit::serve
