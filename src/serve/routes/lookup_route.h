#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "http/http.h"
#include "http/request_json.h"
#include "serve/scoring/row_scorer.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// Answers POST /v1/lookup: the numbers that a model has learnt for values of its categorical
// features, as they were released. The public sees no rows of a learner without privacy (403). The
// failure names the snapshot's version if another one was asked for.
// `elsewhere` are learners without rows.
void AnswerLookup(const std::vector<ScoringModel>& models,
                  std::span<const http::LearnerElsewhere> elsewhere,
                  const store::Snapshot& snapshot, std::optional<uint64_t> version,
                  const http::Request& request, http::Reply* reply);

}  // namespace tacit::serve
