#include "model/sequence/counted_logits.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "model/transitions/scorer.h"

namespace tacit::model {
namespace {

// The number added before the logarithm, in multiples of the mean score.
constexpr double kFloor = 3;

}  // namespace

Status CheckCountedLogits(uint64_t items, const transitions::Options& options) {
  if (options.IsDense(items)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("logits of counts are a table of all pairs of items, and {} items are "
                          "too many for one",
                          items));
}

std::vector<float> CountedLogits(const transitions::Estimate& estimate,
                                 const transitions::Options& options, double weight,
                                 WorkerPool& workers) {
  const transitions::Scorer scorer(estimate, options, workers);
  std::vector<float> table(scorer.table().begin(), scorer.table().end());
  const double mean =
      std::accumulate(table.begin(), table.end(), 0.0) / static_cast<double>(table.size());
  // If nothing was counted, all logits are 0.
  const double floor = mean > 0 ? kFloor * mean : 1;
  for (float& value : table) value = static_cast<float>(weight * std::log((value + floor) / floor));
  return table;
}

}  // namespace tacit::model
