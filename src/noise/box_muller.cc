// Compiled with -O3 and without errno and trap semantics (see CMakeLists.txt), so that the loop
// below becomes vector code. Contraction is off in the whole tree and fused operations are spelled
// out, hence equal bits everywhere.
#include "noise/box_muller.h"

#include <bit>
#include <cmath>

#include "base/cpu.h"

namespace tacit::noise {
namespace {

#define TACIT_INLINE [[gnu::always_inline]] inline

constexpr float kQuarterTurn = 1.57079632679f;

// Rounds once by definition, so it gives the same result everywhere.
TACIT_INLINE float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// ln u for a normal u in (0, 1]: u = 2^e m with m in [sqrt(1/2), sqrt(2)), then the polynomial of
// Cephes' logf.
TACIT_INLINE float Log(float u) {
  const uint32_t bits = std::bit_cast<uint32_t>(u);
  const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
  const float f = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  const float e = static_cast<float>(exponent);
  float p = 7.0376836292e-2f;
  p = Fma(p, f, -1.1514610310e-1f);
  p = Fma(p, f, 1.1676998740e-1f);
  p = Fma(p, f, -1.2420140846e-1f);
  p = Fma(p, f, 1.4249322787e-1f);
  p = Fma(p, f, -1.6668057665e-1f);
  p = Fma(p, f, 2.0000714765e-1f);
  p = Fma(p, f, -2.4999993993e-1f);
  p = Fma(p, f, 3.3333331174e-1f);
  // f - f^2/2 + f^3 p + e ln 2; ln 2 in two parts, so that e ln 2 adds no error of its own.
  const float f2 = f * f;
  const float small = Fma(p * f, f2, -2.12194440e-4f * e);
  return Fma(e, 0.693359375f, Fma(-0.5f, f2, small) + f);
}

// Sine and cosine for |x| <= pi/4, the polynomials of Cephes' sinf and cosf.
TACIT_INLINE float SinPoly(float x) {
  const float z = x * x;
  const float p = Fma(Fma(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f);
  return Fma(p * z, x, x);
}
TACIT_INLINE float CosPoly(float x) {
  const float z = x * x;
  const float p =
      Fma(Fma(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f);
  return Fma(Fma(p, z, -0.5f), z, 1.0f);
}

TACIT_INLINE void Loop(const uint32_t* __restrict bits, float stddev, float* __restrict first,
                       float* __restrict second, size_t pairs) {
  for (size_t i = 0; i < pairs; ++i) {
    const uint32_t a = bits[i];
    const uint32_t b = bits[pairs + i];
    // u: 32 bits of a and the lowest 8 of b, which the angle does not need. Small values, where
    // the tail is, keep all their bits.
    const float high = static_cast<float>(static_cast<int32_t>(a >> 1));
    const float low = static_cast<float>(static_cast<int32_t>((a & 1) << 8 | (b & 255)));
    const float u = Fma(low + 0.5f, 0x1p-9f, high) * 0x1p-31f;
    const float radius = std::sqrt(-2.0f * Log(u)) * stddev;
    // The angle: 22 bits within an eighth of a turn to either side of an axis, 2 bits which axis.
    const float place = static_cast<float>(static_cast<int32_t>((b >> 8) & 0x3fffff));
    const float x = Fma(place, 0x1p-22f * kQuarterTurn, (0x1p-23f - 0.5f) * kQuarterTurn);
    const float sine = SinPoly(x);
    const float cosine =
        std::bit_cast<float>(std::bit_cast<uint32_t>(CosPoly(x)) ^ (b & 0x80000000u));
    const bool swap = (b & 0x40000000u) != 0;
    first[i] = Fma(radius, swap ? sine : cosine, first[i]);
    second[i] = Fma(radius, swap ? cosine : sine, second[i]);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] void
AddBoxMullerAvx512(const uint32_t* bits, float stddev, float* first, float* second, size_t pairs) {
  Loop(bits, stddev, first, second, pairs);
}
#endif

}  // namespace

void AddBoxMullerPortable(const uint32_t* bits, float stddev, float* first, float* second,
                          size_t pairs) {
  Loop(bits, stddev, first, second, pairs);
}

BoxMullerFunction FastestBoxMuller() {
#if defined(__x86_64__)
  if (ThisCpu().avx512) return AddBoxMullerAvx512;
#endif
  return AddBoxMullerPortable;
}

}  // namespace tacit::noise
