#include "inspect/noised_counts.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "mechanism/grid.h"
#include "noise/declared.h"

namespace tacit::inspect {

size_t NoisedCounts::Add(std::span<const double> counts, double bound, double weight) {
  TACIT_CHECK(released_.empty(), "counts are added before the release");
  TACIT_CHECK(
      bound > 0 && weight >= 0x1p-10 && weight <= 0x1p10 && std::exp2(std::ilogb(weight)) == weight,
      "a weight is a power of two");
  const size_t first = weighted_.size();
  squares_ += bound * bound * weight * weight;
  smallest_weight_ = std::min(smallest_weight_, weight);
  for (const double count : counts) {
    TACIT_CHECK(count == std::floor(count) && std::abs(count) < 0x1p40, "a count is whole");
    weighted_.push_back(count * weight);
    weight_.push_back(weight);
  }
  return first;
}

double NoisedCounts::sensitivity() const { return std::sqrt(squares_); }

void NoisedCounts::Release(noise::NoiseSource& noise) {
  TACIT_CHECK(released_.empty(), "counts are released once");
  released_ = weighted_;
  deviation_.assign(weighted_.size(), 0);
  if (noise_multiplier_ > 0 && !weighted_.empty()) {
    // Weighted counts are whole multiples of the smallest weight, and so of the step, which is no
    // larger (kPrivateFieldsMost sees to that).
    const double clip = sensitivity() * (1 + 1e-12);
    mechanism::Grid grid = mechanism::MakeHistogramGrid(clip, noise_multiplier_);
    TACIT_CHECK(grid.step <= smallest_weight_, "the grid is as fine as the weights");
    std::vector<int64_t> sums(weighted_.size());
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] = static_cast<int64_t>(weighted_[i] / grid.step);
    std::vector<float> noised(sums.size());
    noise.Rekey();
    const noise::Declaration declared(noise, {"inspection", clip / grid.step});
    mechanism::Release(grid, 1, noise, sums, noised);
    for (size_t i = 0; i < sums.size(); ++i) released_[i] = noised[i];
    std::ranges::fill(deviation_, grid.stddev * grid.step);
  }
  for (size_t i = 0; i < released_.size(); ++i) {
    released_[i] /= weight_[i];
    deviation_[i] /= weight_[i];
  }
}

double NameThreshold(double bound, double deviation) {
  return bound + kNameDeviations * deviation + 1;
}

}  // namespace tacit::inspect
