#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "model/gradient.h"

namespace tacit::model::testing {

// min(1, C / |g|) over all groups jointly.
class FlatClip final : public ScaleRule {
 public:
  explicit FlatClip(double clip, double grid_step = 0) : clip_(clip), grid_step_(grid_step) {}
  double grid_step() const override { return grid_step_; }
  void Scales(const GroupNorms& norms, std::span<float> scales) const override {
    for (size_t u = 0; u < norms.units; ++u) {
      double squared = 0;
      for (size_t g = 0; g < norms.groups; ++g) squared += norms.squared[g * norms.units + u];
      const double scale = std::min(1.0, clip_ / std::sqrt(squared));
      for (size_t g = 0; g < norms.groups; ++g)
        scales[g * norms.units + u] = static_cast<float>(scale);
    }
  }

 private:
  const double clip_, grid_step_;
};

// A different scale for every group and unit, so that a mix-up shows.
class PerGroup final : public ScaleRule {
 public:
  void Scales(const GroupNorms& norms, std::span<float> scales) const override {
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = 0.25f + static_cast<float>(i % 7) / (1 + norms.squared[i]);
  }
};

class NoClip final : public ScaleRule {
 public:
  bool needs_norms() const override { return false; }
  void Scales(const GroupNorms&, std::span<float>) const override { std::abort(); }
};

}  // namespace tacit::model::testing
