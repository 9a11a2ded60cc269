#include "model/sequence/counted_logits.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/transitions/scorer.h"

namespace tacit::model {
namespace {

// The number added before the logarithm, in multiples of the mean score.
constexpr double kFloor = 3;

}  // namespace

void SetCountedLogits(const transitions::Estimate& estimate, const transitions::Options& options,
                      double weight, WorkerPool& workers, DecayedLogits* logits) {
  auto scorer = std::make_shared<const transitions::Scorer>(estimate, options, workers);
  const double mean = scorer->MeanScore();
  // If nothing was counted, all logits are 0.
  const double floor = mean > 0 ? kFloor * mean : 1;
  if (!scorer->table().empty()) {
    std::vector<float> table(scorer->table().begin(), scorer->table().end());
    for (float& value : table)
      value = static_cast<float>(weight * std::log((value + floor) / floor));
    logits->Set(std::move(table));
    return;
  }
  logits->Set([scorer = std::move(scorer), weight = static_cast<float>(weight),
               share = static_cast<float>(1 / floor)](uint32_t item, std::span<float> row) {
    scorer->Score({&item, 1}, row);
    for (float& value : row) value = weight * std::log(1 + share * value);
  });
}

}  // namespace tacit::model
