#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// Functions of one float, written so that a loop over them becomes vector code: no branch, no call.
namespace tacit::ops {

// e^x to 2 units in the last place, for x clamped to [-87, 88]: a smaller result becomes e^-87 =
// 1.6e-38. Cephes' polynomial.
[[gnu::always_inline]] inline float Exp(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kToInteger = 0x1.8p23f;
  x = x > -87.0f ? x : -87.0f;
  x = x < 88.0f ? x : 88.0f;
  const float shifted = std::fma(x, kLog2E, kToInteger);
  const float n = shifted - kToInteger;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  float p = 1.9875691500e-4f;
  p = std::fma(p, r, 1.3981999507e-3f);
  p = std::fma(p, r, 8.3334519073e-3f);
  p = std::fma(p, r, 4.1665795894e-2f);
  p = std::fma(p, r, 1.6666665459e-1f);
  p = std::fma(p, r, 5.0000001201e-1f);
  p = std::fma(p, r * r, r + 1);
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) << 23;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + exponent);
}

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
