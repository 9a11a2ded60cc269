#include "mechanism/clipping.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tacit::mechanism {

FlatClip::FlatClip(double clip) : clip_(clip) {
  TACIT_CHECK(clip > 0 && std::isfinite(clip), "a clip norm must be positive");
}

void FlatClip::Scales(const model::GroupNorms& norms, std::span<float> scales) const {
  const size_t units = norms.units;
  TACIT_CHECK(norms.squared.size() == norms.groups * units &&
              scales.size() == norms.squared.size());
  for (size_t unit = 0; unit < units; ++unit) {
    double squared = 0;
    for (size_t group = 0; group < norms.groups; ++group)
      squared += norms.squared[group * units + unit];
    const double norm = std::sqrt(squared) * (1 + 0x1p-20);
    float scale = 1;
    if (!std::isfinite(norm)) {
      scale = 0;
    } else if (norm > clip_) {
      scale = static_cast<float>(clip_ / norm);
    }
    for (size_t group = 0; group < norms.groups; ++group) scales[group * units + unit] = scale;
  }
}

void NoClip::Scales(const model::GroupNorms&, std::span<float> scales) const {
  std::fill(scales.begin(), scales.end(), 1.0f);
}

}  // namespace tacit::mechanism
