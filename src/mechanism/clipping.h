#pragma once

#include <span>

#include "model/gradient.h"

namespace tacit::mechanism {

// Flat clipping: all groups of a unit by min(1, clip / |g|), |g| over all parameters jointly. The
// norm is taken 2^-20 larger than it is given, so that its rounding to f32 cannot carry a unit over
// the clip. A norm that is no finite number gets the scale 0. On a grid the clip is smaller by what
// rounding can add to the unit, so that after rounding, too, no unit is longer than `clip`.
class FlatClip final : public model::ScaleRule {
 public:
  // REQUIRES clip > 0, and a grid_step that is a power of two or 0.
  explicit FlatClip(double clip, double grid_step = 0);
  double grid_step() const override { return grid_step_; }
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override;

 private:
  double clip_;
  double grid_step_;
};

// No clip: every scale is 1.
class NoClip final : public model::ScaleRule {
 public:
  bool needs_norms() const override { return false; }
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override;
};

}  // namespace tacit::mechanism
