#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "http/http.h"
#include "http/request_json.h"
#include "serve/scoring/row_scorer.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// Answers GET /v1/weights?learner=ID&column=NAME&top=N: the largest weights of a model whose
// parameters can be read one by one. All of them are released numbers, which training has paid for.
// docs/internals/serve.md documents the form.
// `elsewhere` are learners without weights of their own.
void AnswerWeights(const std::vector<ScoringModel>& models,
                   std::span<const http::LearnerElsewhere> elsewhere,
                   const store::Snapshot& snapshot, std::string_view query, http::Reply* reply);

}  // namespace tacit::serve
