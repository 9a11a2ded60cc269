#pragma once

#include <cstddef>
#include <cstdint>
#include <numbers>

#include "base/device.h"

// The arithmetic of grid_gaussian.h, written once for vectors of any width. `V` stands for what a
// processor can do: types Real and Word of kLanes numbers each, and the operations that have no
// operator. Every operation is exact or rounds once, so that all processors give equal bits.
//
// Included by files that are compiled for different processors, and by the device's kernels: every
// function is in an unnamed namespace and calls no function of the standard library, so that no
// function compiled for one processor can be linked into code that runs on another.
namespace tacit::noise {

// Plain numbers. The struct has a name outside this file because kernels take it as an argument.
struct GridScale {
  double root_two_stddev;
  // 1.5 * 2^52 plus the lowest dither. A double of this size has its integer in the low bits, and
  // rounding down is the floor.
  double to_integer;
  uint64_t dither_mask;
  int dither_shift;
};

namespace {

#if defined(__CUDACC__)
#define TACIT_INLINE TACIT_DEVICE __forceinline__
#else
#define TACIT_INLINE [[gnu::always_inline]] inline
#endif

// A keystream's bytes, read eight at a time.
using KeyWord [[gnu::may_alias]] = uint64_t;

// c[0] z^(n-1) + ... + c[n-1].
template <class V, size_t n>
TACIT_INLINE typename V::Real Horner(typename V::Real z, const double (&c)[n]) {
  typename V::Real sum = V::Fma(z, V::All(c[0]), V::All(c[1]));
#pragma GCC unroll 8
  for (size_t i = 2; i < n; ++i) sum = V::Fma(z, sum, V::All(c[i]));
  return sum;
}

// -ln(v 2^-75) for v in [1, 2^75]: v = 2^e m with m in [1, 2), ln m = ln k - 2 artanh(s) with
// s = (k - m) / (k + m), k the double next to the root of 2, and fdlibm's polynomial for artanh.
template <class V>
TACIT_INLINE typename V::Real MinusLog(typename V::Real v) {
  constexpr double kRoot = std::numbers::sqrt2, kLogRoot = 0x1.62e42fefa39f0p-2;
  const auto e = V::Exponent(v) - 75.0;
  const auto m = V::Mantissa(v);
  const auto s = (kRoot - m) / (kRoot + m);
  const auto z = s * s;
  const auto p =
      Horner<V>(z, {1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                    2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                    6.666666666666735130e-01, 2});
  const auto log = V::Fma(s, p, V::Fma(e, V::All(-std::numbers::ln2), V::All(-kLogRoot)));
  return V::NotBelowZero(log);  // where v is next to 2^75
}

// Sine and cosine for |x| <= pi/4, fdlibm's polynomials; z = x^2.
template <class V>
TACIT_INLINE typename V::Real Sine(typename V::Real x, typename V::Real z) {
  const auto p = Horner<V>(
      z, {1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
          -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01});
  return V::Fma(z * x, p, x);
}
template <class V>
TACIT_INLINE typename V::Real Cosine(typename V::Real z) {
  return Horner<V>(z, {-1.13596475577881948265e-11, 2.08757232129817482790e-09,
                       -2.75573143513906633035e-07, 2.48015872894767294178e-05,
                       -1.38888888888741095749e-03, 4.16666666666666019037e-02, -0.5, 1});
}

// A point of the plane: its radius, times root_two_stddev / sqrt(2), and its place on the unit
// circle.
template <class V>
struct Polar {
  typename V::Real radius, cosine, sine;
};

// Makes a point from 128 random bits, as grid_gaussian.h describes.
template <class V>
TACIT_INLINE Polar<V> PolarOf(typename V::Word a, typename V::Word b, double root_two_stddev) {
  const auto u = V::Fma(V::FromWord(a), V::All(0x1p11), V::FromWord((b & 0x7fe) | 1));
  const auto radius = V::Sqrt(MinusLog<V>(u)) * root_two_stddev;
  constexpr double kQuarterTurn = std::numbers::pi / 2;
  const auto x = V::Fma(V::FromAngle(b), V::All(0x1p-62 * kQuarterTurn),
                        V::All((0x1p-52 - 0.5) * kQuarterTurn));
  const auto z = x * x;
  const auto sine = Sine<V>(x, z);
  const auto cosine = V::FlipSign(Cosine<V>(z), b & 0x8000000000000000);
  const auto swap = V::Test(b, 0x4000000000000000);
  return {radius, V::Choose(swap, sine, cosine), V::Choose(swap, cosine, sine)};
}

template <class V>
TACIT_INLINE void FillNormalsAt(const KeyWord* words, double* first, double* second, size_t pairs) {
  const Polar<V> z = PolarOf<V>(V::Load(words), V::Load(words + pairs), std::numbers::sqrt2);
  V::Store(first, z.radius * z.cosine);
  V::Store(second, z.radius * z.sine);
}

constexpr uint64_t kToIntegerBits = 0x4338000000000000;  // of 1.5 * 2^52

TACIT_INLINE GridScale MakeGridScale(double stddev, int dither_bits) {
  const uint64_t width = uint64_t{1} << dither_bits;
  return {.root_two_stddev = stddev * std::numbers::sqrt2,
          .to_integer = 0x1.8p52 + 1 - static_cast<double>(width / 2),
          .dither_mask = width - 1,
          .dither_shift = 64 - dither_bits};
}

// floor(stddev * z) + d for the two normals of a pair: integers n as the bits of 1.5 * 2^52 + n, to
// which those of `kPlus` are added. REQUIRES that kPlus has none where the dither is.
template <class V>
struct Steps {
  typename V::Word first, second;
};
template <class V, uint64_t kPlus>
TACIT_INLINE Steps<V> StepsAt(const KeyWord* words, const GridScale& scale, size_t pairs) {
  const Polar<V> z = PolarOf<V>(V::Load(words), V::Load(words + pairs), scale.root_two_stddev);
  const auto dither = V::Load(words + 2 * pairs);
  return {
      V::FloorBits(z.radius, z.cosine, scale.to_integer) + ((dither & scale.dither_mask) | kPlus),
      V::FloorBits(z.radius, z.sine, scale.to_integer) + ((dither >> scale.dither_shift) | kPlus)};
}

// Unsigned, because sums may wrap.
template <class V>
TACIT_INLINE void AddGridAt(const KeyWord* words, const GridScale& scale, uint64_t* first,
                            uint64_t* second, size_t pairs) {
  const auto n = StepsAt<V, -kToIntegerBits>(words, scale, pairs);
  V::Store(first, V::Load(first) + n.first);
  V::Store(second, V::Load(second) + n.second);
}

template <class V>
TACIT_INLINE void FillGridAt(const KeyWord* words, const GridScale& scale, double factor,
                             float* first, float* second, size_t pairs) {
  const auto n = StepsAt<V, 0>(words, scale, pairs);
  V::StoreFloats(first, (V::FromBits(n.first) - 0x1.8p52) * factor);
  V::StoreFloats(second, (V::FromBits(n.second) - 0x1.8p52) * factor);
}

}  // namespace
}  // namespace tacit::noise
