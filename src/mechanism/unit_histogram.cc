#include "mechanism/unit_histogram.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "mechanism/contribution.h"
#include "noise/declared.h"

namespace tacit::mechanism {
namespace {

constexpr double kClip = 1;

}  // namespace

UnitHistogram::UnitHistogram(size_t cells, double noise_multiplier)
    : noise_multiplier_(noise_multiplier),
      // Without noise any grid will do; this is that of a multiplier of 1.
      grid_(MakeHistogramGrid(kClip, noise_multiplier == 0 ? 1 : noise_multiplier)),
      sums_(cells) {
  TACIT_CHECK(noise_multiplier >= 0 && std::isfinite(noise_multiplier));
}

void UnitHistogram::Add(const UnitVector& unit) {
  TACIT_CHECK(unit.size() == sums_.size(), "a unit of another query");
  const std::span<const uint32_t> cells = unit.cells();
  const std::span<const double> weights = unit.weights();
  for (const double weight : weights)
    TACIT_CHECK(weight >= 0 && weight <= std::numeric_limits<double>::max(), "no weight");
  const double scale = ContributionScale(kClip, grid_, weights);
  for (size_t i = 0; i < cells.size(); ++i)
    std::atomic_ref(sums_[cells[i]])
        .fetch_add(StepsAt(weights[i], scale), std::memory_order_relaxed);
}

std::vector<float> UnitHistogram::Release(noise::NoiseSource& noise) && {
  std::vector<float> released(sums_.size());
  if (noise_multiplier_ > 0) {
    const noise::Declaration declared(noise, {"histogram", kClip / grid_.step});
    noise.Rekey();
    mechanism::Release(grid_, 1, noise, sums_, released);
  } else {
    for (size_t i = 0; i < sums_.size(); ++i)
      released[i] = static_cast<float>(static_cast<double>(sums_[i]) * grid_.step);
  }
  sums_ = {};
  return released;
}

privacy::Charge UnitHistogram::charge() const {
  if (noise_multiplier_ == 0) return {};
  return {.mechanism = privacy::MechanismKind::kVocabulary,
          .noise_multiplier = noise_multiplier_,
          .sigma_selection = noise_multiplier_,
          .clip_selection = kClip};
}

}  // namespace tacit::mechanism
