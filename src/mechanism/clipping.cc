#include "mechanism/clipping.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tacit::mechanism {

FlatClip::FlatClip(double clip, double grid_step) : clip_(clip), grid_step_(grid_step) {
  TACIT_CHECK(clip > 0 && std::isfinite(clip), "a clip norm must be positive");
  TACIT_CHECK(
      grid_step == 0 || (grid_step > 0 && std::ldexp(1, std::ilogb(grid_step)) == grid_step),
      "a grid's step is a power of two");
}

void FlatClip::Scales(const model::GroupNorms& norms, std::span<float> scales) const {
  const size_t units = norms.units;
  TACIT_CHECK(norms.squared.size() == norms.groups * units &&
              scales.size() == norms.squared.size());
  TACIT_CHECK(grid_step_ == 0 || norms.rounding.size() == units, "a grid's rounding is bounded");
  for (size_t unit = 0; unit < units; ++unit) {
    double squared = 0;
    for (size_t group = 0; group < norms.groups; ++group)
      squared += norms.squared[group * units + unit];
    const double norm = std::sqrt(squared) * (1 + 0x1p-20);
    const double clip = grid_step_ == 0 ? clip_ : std::max(0.0, clip_ - norms.rounding[unit]);
    float scale = 1;
    if (!std::isfinite(norm)) {
      scale = 0;
    } else if (norm > clip) {
      scale = static_cast<float>(clip / norm);
    }
    for (size_t group = 0; group < norms.groups; ++group) scales[group * units + unit] = scale;
  }
}

void NoClip::Scales(const model::GroupNorms&, std::span<float> scales) const {
  std::fill(scales.begin(), scales.end(), 1.0f);
}

}  // namespace tacit::mechanism
