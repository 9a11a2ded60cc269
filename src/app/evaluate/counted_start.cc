#include "app/evaluate/counted_start.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "model/transitions/scorer.h"
#include "train/transitions_release.h"

namespace tacit::app {
namespace {

// What is added before the logarithm, in means of the scores.
constexpr double kFloor = 3;

}  // namespace

Status CheckCountedLogits(uint64_t items, const model::transitions::Options& options) {
  if (options.IsDense(items)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("logits of counts are a table of all pairs of items, and {} items are "
                          "too many for one",
                          items));
}

std::vector<float> CountedLogits(const model::transitions::Estimate& estimate,
                                 const model::transitions::Options& options, double weight,
                                 WorkerPool& workers) {
  const model::transitions::Scorer scorer(estimate, options, workers);
  std::vector<float> table(scorer.table().begin(), scorer.table().end());
  const double mean =
      std::accumulate(table.begin(), table.end(), 0.0) / static_cast<double>(table.size());
  // Where nothing was counted, nothing is told apart.
  const double floor = mean > 0 ? kFloor * mean : 1;
  for (float& value : table) value = static_cast<float>(weight * std::log((value + floor) / floor));
  return table;
}

Result<CountedStart> ReleaseCountedStart(const model::Histories& train,
                                         const model::transitions::Catalogue& catalogue,
                                         const model::transitions::Options& options, double weight,
                                         double mu, noise::NoiseSource& noise, WorkerPool& workers,
                                         const std::function<void(double)>& progress) {
  TACIT_RETURN_IF_ERROR(CheckCountedLogits(train.catalogue, options));
  TACIT_ASSIGN(const auto release,
               train::ReleaseTransitions(train, catalogue, options, mu, noise, workers, progress));
  auto prior = std::make_unique<model::DecayedLogits>(train.catalogue, options.recent_decay);
  prior->Set(CountedLogits(release.estimate(), options, weight, workers));
  return CountedStart{std::move(prior), release.MuSquared()};
}

}  // namespace tacit::app
