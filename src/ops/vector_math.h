#pragma once

#include <cmath>
#include <cstdint>

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

// The natural logarithm, to 2 units in the last place. REQUIRES a positive x that is neither
// denormal nor infinite. Cephes' polynomial.
[[gnu::always_inline]] inline float Log(float x) {
  constexpr uint32_t kRootHalf = 0x3f3504f3;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const auto bits = __builtin_bit_cast(uint32_t, x);
  // x = (1 + r) 2^n, with 1 + r in [sqrt(1/2), sqrt(2)).
  const int32_t exponent = static_cast<int32_t>(bits - kRootHalf) >> 23;
  const auto n = static_cast<float>(exponent);
  const float r = __builtin_bit_cast(float, bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  float p = 7.0376836292e-2f;
  p = std::fma(p, r, -1.1514610310e-1f);
  p = std::fma(p, r, 1.1676998740e-1f);
  p = std::fma(p, r, -1.2420140846e-1f);
  p = std::fma(p, r, 1.4249322787e-1f);
  p = std::fma(p, r, -1.6668057665e-1f);
  p = std::fma(p, r, 2.0000714765e-1f);
  p = std::fma(p, r, -2.4999993993e-1f);
  p = std::fma(p, r, 3.3333331174e-1f);
  const float square = r * r;
  p = std::fma(p * r, square, std::fma(n, kLn2Low, -0.5f * square));
  return std::fma(n, kLn2High, r + p);
}

}  // namespace tacit::ops
