#pragma once

#include <span>

#include "model/gradient.h"

namespace tacit::mechanism {

// Flat clipping: all groups of a unit by min(1, clip / |g|), |g| over all parameters jointly. The
// norm is taken 2^-20 larger than it is given, so that its rounding to f32 cannot carry a unit over
// the clip. A norm that is no finite number gets the scale 0.
class FlatClip final : public model::ScaleRule {
 public:
  // REQUIRES clip > 0.
  explicit FlatClip(double clip);
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override;

 private:
  double clip_;
};

// No clip: every scale is 1.
class NoClip final : public model::ScaleRule {
 public:
  bool needs_norms() const override { return false; }
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override;
};

}  // namespace tacit::mechanism
