#pragma once

#include <cstdint>

#include "base/device.h"

namespace tacit::ops {

// e^x to 2 units in the last place, for x clamped to [-87, 88]: a smaller result becomes e^-87 =
// 1.6e-38. Cephes' polynomial. Written without branches, so that loops over it become vector code.
// The CPU and kernels get the same bits.
#if defined(__CUDACC__)
TACIT_DEVICE __forceinline__ float Exp(float x) {
#else
[[gnu::always_inline]] inline float Exp(float x) {
#endif
  const auto fma = [](float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
  };
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kToInteger = 0x1.8p23f;
  x = x > -87.0f ? x : -87.0f;
  x = x < 88.0f ? x : 88.0f;
  const float shifted = fma(x, kLog2E, kToInteger);
  const float n = shifted - kToInteger;
  const float r = fma(n, -kLn2Low, fma(n, -kLn2High, x));
  float p = 1.9875691500e-4f;
  p = fma(p, r, 1.3981999507e-3f);
  p = fma(p, r, 8.3334519073e-3f);
  p = fma(p, r, 4.1665795894e-2f);
  p = fma(p, r, 1.6666665459e-1f);
  p = fma(p, r, 5.0000001201e-1f);
  p = fma(p, r * r, r + 1);
  const uint32_t exponent = __builtin_bit_cast(uint32_t, shifted) << 23;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, p) + exponent);
}

}  // namespace tacit::ops
