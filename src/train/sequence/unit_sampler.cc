#include "train/sequence/unit_sampler.h"

#include <numeric>

#include "base/check.h"
#include "noise/declared.h"

namespace tacit::train {

UnitSampler::UnitSampler(uint64_t units, double rate, std::unique_ptr<noise::NoiseSource> coins)
    : units_(units), rate_(rate), coins_(std::move(coins)) {
  TACIT_CHECK(rate > 0 && rate <= 1, "units are taken with some probability");
}

// The gap between two successes of independent coins is geometric. Drawing gaps has the same law as
// a coin for each unit, at one draw per unit taken.
std::span<const uint64_t> UnitSampler::Sample() {
  chosen_.clear();
  if (rate_ == 1) {
    chosen_.resize(units_);
    std::iota(chosen_.begin(), chosen_.end(), uint64_t{0});
    return chosen_;
  }
  coins_->Rekey();
  const noise::Declaration declared(*coins_, {"coins"});
  for (uint64_t unit = coins_->GeometricSkip(rate_); unit < units_;) {
    chosen_.push_back(unit);
    const uint64_t skip = coins_->GeometricSkip(rate_);
    if (skip >= units_ - unit - 1) break;
    unit += skip + 1;
  }
  return chosen_;
}

}  // namespace tacit::train
