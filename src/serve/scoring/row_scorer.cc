#include "serve/scoring/row_scorer.h"

#include <fmt/format.h>

#include <cmath>

namespace tacit::serve {

Status RowModel::AppendWeights(const store::Snapshot&, const WeightsAsked&, std::string*) const {
  return Fail(ErrorCode::kInvalidArgument,
              "the learner's model is a network, whose parameters mean nothing one by one; only a "
              "model of kind linear has weights that can be read");
}

float Sigmoid(float logit) {
  const float e = std::exp(-std::fabs(logit));
  return (logit >= 0 ? 1.0f : e) / (1.0f + e);
}

Status MakeProbabilities(std::string_view learner, const store::Snapshot& snapshot,
                         std::span<float> scores) {
  for (float& score : scores) {
    score = Sigmoid(score);
    if (!std::isfinite(score))
      return Fail(ErrorCode::kCorruption,
                  fmt::format("learner '{}': version {} gives scores that are not numbers", learner,
                              snapshot.version().value));
  }
  return {};
}

Error NotYetCommitted(std::string_view learner) {
  return {ErrorCode::kUnavailable, fmt::format("learner '{}' has no committed model yet", learner)};
}

}  // namespace tacit::serve
