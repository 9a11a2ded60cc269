#pragma once

#include <cmath>

#include "ops/exp.h"

// Functions of one float beside exp.h, written so that a loop over them becomes vector code: no
// branch, no call.
namespace tacit::ops {

// The variance of max(X, 0) over that of X, X normal and z its mean over its standard deviation:
// (z^2 + 1) Phi(z) + z phi(z) - (z Phi(z) + phi(z))^2, to 3e-6. Beyond six deviations it is 0 or 1.
[[gnu::always_inline]] inline float ReluVarianceRatio(float z) {
  constexpr float kMost = 6.0f, kInverseRoot2Pi = 0.39894228f;
  z = z > -kMost ? z : -kMost;
  z = z < kMost ? z : kMost;
  const float density = kInverseRoot2Pi * Exp(-0.5f * z * z);
  // Abramowitz and Stegun 26.2.17: Phi(-|z|) to 7.5e-8.
  const float t = 1 / std::fma(0.2316419f, std::abs(z), 1.0f);
  float p = 1.330274429f;
  p = std::fma(p, t, -1.821255978f);
  p = std::fma(p, t, 1.781477937f);
  p = std::fma(p, t, -0.356563782f);
  p = std::fma(p, t, 0.319381530f);
  const float tail = density * p * t;
  const float below = z > 0 ? 1 - tail : tail;
  const float mean = std::fma(z, below, density);
  const float ratio = std::fma(std::fma(z, z, 1.0f), below, std::fma(z, density, -mean * mean));
  return ratio > 0 ? ratio : 0;
}

}  // namespace tacit::ops
