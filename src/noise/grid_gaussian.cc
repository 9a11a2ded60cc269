// Compiled with -O3 and without errno and trap semantics (see CMakeLists.txt), so that the loops
// below become vector code. Contraction is off in the whole tree and fused operations are spelled
// out, hence equal bits everywhere.
#include "noise/grid_gaussian.h"

#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "noise/noise.h"

namespace tacit::noise {
namespace {

#define TACIT_INLINE [[gnu::always_inline]] inline

constexpr double kQuarterTurn = std::numbers::pi / 2;
// Added to a number of magnitude below 2^51, this leaves it rounded to an integer in the low bits.
constexpr double kToInteger = 0x1.8p52;
constexpr uint64_t kTwoTo52 = 0x4330000000000000;  // the bits of 2^52

// One rounding by definition, so the same everywhere.
TACIT_INLINE double Fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

// n + plus, for an integer n below 2^52 and a multiple of 1/2 in [-2^52, 1).
TACIT_INLINE double ToDouble(uint64_t n, double plus = 0) {
  return std::bit_cast<double>(n | kTwoTo52) - (0x1p52 - plus);
}

// -ln(v 2^-52) for v in [2^-24, 2^52]: v = 2^e m with m in [sqrt(1/2), sqrt(2)), then fdlibm's log:
// log(1 + f) = f - s (f - R(s^2)) with s = f / (2 + f).
TACIT_INLINE double MinusLog(double v) {
  const uint64_t bits = std::bit_cast<uint64_t>(v);
  const uint64_t biased = (bits + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd)) >> 52;
  const double e = ToDouble(biased, -1023 - 52);
  const double f = std::bit_cast<double>(bits - (biased << 52) + (uint64_t{1023} << 52)) - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  double r = Fma(z, 1.479819860511658591e-01, 1.531383769920937332e-01);
  r = Fma(z, r, 1.818357216161805012e-01);
  r = Fma(z, r, 2.222219843214978396e-01);
  r = Fma(z, r, 2.857142874366239149e-01);
  r = Fma(z, r, 3.999999999940941908e-01);
  r = Fma(z, r, 6.666666666666735130e-01);
  return Fma(e, -std::numbers::ln2, Fma(s, Fma(-z, r, f), -f));
}

// Sine and cosine for |x| <= pi/4, fdlibm's polynomials.
TACIT_INLINE double SinPoly(double x, double z) {
  double p = Fma(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
  p = Fma(z, p, 2.75573137070700676789e-06);
  p = Fma(z, p, -1.98412698298579493134e-04);
  p = Fma(z, p, 8.33333333332248946124e-03);
  p = Fma(z, p, -1.66666666666666324348e-01);
  return Fma(z * x, p, x);
}
TACIT_INLINE double CosPoly(double z) {
  double p = Fma(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09);
  p = Fma(z, p, -2.75573143513906633035e-07);
  p = Fma(z, p, 2.48015872894767294178e-05);
  p = Fma(z, p, -1.38888888888741095749e-03);
  p = Fma(z, p, 4.16666666666666019037e-02);
  return Fma(z, Fma(z, p, -0.5), 1);
}

// The two normals of 128 random bits: radius times a point of the unit circle. The radius is
// multiplied by root_two_stddev / sqrt(2).
struct Polar {
  double radius, cosine, sine;
};
TACIT_INLINE Polar Normals(uint64_t a, uint64_t b, double root_two_stddev) {
  const double low = ToDouble((a & 0xfff) << 11 | (b & 0x7ff), 0.5);
  const double radius = std::sqrt(MinusLog(Fma(low, 0x1p-23, ToDouble(a >> 12)))) * root_two_stddev;
  // The angle: 51 bits within an eighth of a turn to either side of an axis, 2 bits which axis.
  const double x = Fma(ToDouble(b >> 11 & 0x7ffffffffffff), 0x1p-51 * kQuarterTurn,
                       (0x1p-52 - 0.5) * kQuarterTurn);
  const double z = x * x;
  const double sine = SinPoly(x, z);
  const double cosine =
      std::bit_cast<double>(std::bit_cast<uint64_t>(CosPoly(z)) ^ (b & 0x8000000000000000));
  const bool swap = (b & 0x4000000000000000) != 0;
  return {radius, swap ? sine : cosine, swap ? cosine : sine};
}

// A keystream's bytes, read eight at a time.
using Word [[gnu::may_alias]] = uint64_t;

TACIT_INLINE void NormalsLoop(const Word* __restrict words, double* __restrict first,
                              double* __restrict second, size_t pairs) {
  for (size_t i = 0; i < pairs; ++i) {
    const Polar z = Normals(words[i], words[pairs + i], std::numbers::sqrt2);
    first[i] = z.radius * z.cosine;
    second[i] = z.radius * z.sine;
  }
}

// floor(y) for |y| < 2^50, but for y within rounding of an integer; as the bits of an integer.
TACIT_INLINE uint64_t Floor(double y_minus_half) {
  return std::bit_cast<uint64_t>(y_minus_half + kToInteger) - std::bit_cast<uint64_t>(kToInteger);
}

TACIT_INLINE void GridLoop(const Word* __restrict words, double stddev, int dither_bits,
                           uint64_t* __restrict first, uint64_t* __restrict second, size_t pairs) {
  const int shift = 32 - dither_bits;
  const double root_two_stddev = stddev * std::numbers::sqrt2;
  const uint64_t lowest = 1 - (uint64_t{1} << dither_bits) / 2;
  for (size_t i = 0; i < pairs; ++i) {
    const Polar z = Normals(words[i], words[pairs + i], root_two_stddev);
    const uint64_t dither = words[2 * pairs + i];
    first[i] += Floor(Fma(z.radius, z.cosine, -0.5)) + ((dither & 0xffffffff) >> shift) + lowest;
    second[i] += Floor(Fma(z.radius, z.sine, -0.5)) + (dither >> 32 >> shift) + lowest;
  }
}

// Unsigned, for they may wrap.
uint64_t* Unsigned(int64_t* values) { return reinterpret_cast<uint64_t*>(values); }

#if defined(__x86_64__)
#define TACIT_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]

TACIT_AVX512 void FillNormalsAvx512(const uint32_t* bits, double* first, double* second,
                                    size_t pairs) {
  NormalsLoop(reinterpret_cast<const Word*>(bits), first, second, pairs);
}
TACIT_AVX512 void AddGridAvx512(const uint32_t* bits, double stddev, int dither_bits,
                                int64_t* first, int64_t* second, size_t pairs) {
  GridLoop(reinterpret_cast<const Word*>(bits), stddev, dither_bits, Unsigned(first),
           Unsigned(second), pairs);
}

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace

void FillNormalsPortable(const uint32_t* bits, double* first, double* second, size_t pairs) {
  NormalsLoop(reinterpret_cast<const Word*>(bits), first, second, pairs);
}

FillNormalsFunction FastestFillNormals() {
#if defined(__x86_64__)
  if (HasAvx512()) return FillNormalsAvx512;
#endif
  return FillNormalsPortable;
}

void AddGridPortable(const uint32_t* bits, double stddev, int dither_bits, int64_t* first,
                     int64_t* second, size_t pairs) {
  GridLoop(reinterpret_cast<const Word*>(bits), stddev, dither_bits, Unsigned(first),
           Unsigned(second), pairs);
}

AddGridFunction FastestAddGrid() {
#if defined(__x86_64__)
  if (HasAvx512()) return AddGridAvx512;
#endif
  return AddGridPortable;
}

int DitherBits(double stddev) {
  TACIT_CHECK(stddev >= kGridStddevMin && stddev <= kGridStddevMax,
              "the grid's step does not fit the noise");
  return std::ilogb(stddev) - 6;
}

// P(floor(s z) + d >= t) = mean over d of P(s z >= t - d): Gauss and Legendre's rule with three
// points on the dither, whose width is at most s / 64; what it leaves out is below 1e-12 of the
// result within ten standard deviations.
double GridGaussianTail(double stddev, int64_t threshold) {
  const double half_width = std::ldexp(0.5, DitherBits(stddev));
  const double middle = static_cast<double>(threshold) - 0.5;
  double tail = 0;
  for (const auto& [place, weight] : {std::pair(-std::sqrt(0.6), 5.0 / 18), std::pair(0.0, 4.0 / 9),
                                      std::pair(std::sqrt(0.6), 5.0 / 18)})
    tail += weight * std::erfc((middle + place * half_width) / stddev / std::numbers::sqrt2) / 2;
  return tail;
}

}  // namespace tacit::noise
