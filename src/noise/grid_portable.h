#pragma once

#include "noise/grid_kernel.h"

namespace tacit::noise {
namespace {

// One number at a time, in operations that compilers turn into vector code for any processor.
struct Portable {
  using Real = double;
  using Word = uint64_t;

  TACIT_INLINE static Word Bits(Real x) { return __builtin_bit_cast(Word, x); }
  TACIT_INLINE static Real FromBits(Word x) { return __builtin_bit_cast(Real, x); }

  TACIT_INLINE static Real All(double x) { return x; }
  TACIT_INLINE static Word Load(const uint64_t* from) { return *from; }
  TACIT_INLINE static void Store(double* to, Real x) { *to = x; }
  TACIT_INLINE static void Store(uint64_t* to, Word x) { *to = x; }
  TACIT_INLINE static void StoreFloats(float* to, Real x) { *to = static_cast<float>(x); }
#if defined(__CUDA_ARCH__)
  // Both round to nearest, like the built-ins of the host's compiler.
  TACIT_INLINE static Real Fma(Real a, Real b, Real c) { return __fma_rn(a, b, c); }
  TACIT_INLINE static Real Sqrt(Real x) { return __dsqrt_rn(x); }
#else
  TACIT_INLINE static Real Fma(Real a, Real b, Real c) { return __builtin_fma(a, b, c); }
  TACIT_INLINE static Real Sqrt(Real x) { return __builtin_sqrt(x); }
#endif
  // Converts each half exactly, as an offset from 2^84 or 2^52; their sum is rounded once.
  TACIT_INLINE static Real FromWord(Word n) {
    const Real high = FromBits(n >> 32 | 0x4530000000000000) - (0x1p84 + 0x1p52);
    return high + FromBits((n & 0xffffffff) | 0x4330000000000000);
  }
  // Converts the 51 bits from bit 11 on, at their place values, as an offset from 2^63.
  TACIT_INLINE static Real FromAngle(Word n) {
    return FromBits((n >> 11 & 0x7ffffffffffff) | 0x43e0000000000000) - 0x1p63;
  }
  TACIT_INLINE static Real Exponent(Real x) {
    return FromBits(Bits(x) >> 52 | 0x4330000000000000) - (0x1p52 + 1023);
  }
  TACIT_INLINE static Real Mantissa(Real x) {
    return FromBits((Bits(x) & 0xfffffffffffff) | 0x3ff0000000000000);
  }
  TACIT_INLINE static Real NotBelowZero(Real x) { return x > 0 ? x : 0; }
  // Returns the bits of a * b + c rounded down, for sums between 2^52 and 2^53: the nearest
  // integer, less one if that is too much.
  TACIT_INLINE static Word FloorBits(Real a, Real b, double c) {
    const Real nearest = Fma(a, b, c);
    return Bits(nearest) - (Bits(Fma(a, b, c - nearest)) >> 63);
  }
  TACIT_INLINE static Real FlipSign(Real x, Word sign) { return FromBits(Bits(x) ^ sign); }
  TACIT_INLINE static bool Test(Word n, uint64_t bit) { return (n & bit) != 0; }
  TACIT_INLINE static Real Choose(bool lane, Real yes, Real no) { return lane ? yes : no; }
};

}  // namespace
}  // namespace tacit::noise
