#pragma once

#include <immintrin.h>

#include <cstddef>

// The building blocks of this room's own products: 32-bit lanes, 16 to a vector. A lane is a float,
// or two bf16 that are neighbours in the inner dimension of a product. For files of this room that
// HasTileGemm guards.
//
// Written with intrinsics: speed depends on which numbers stand in which register.
#if defined(__clang__)
#define TACIT_LANES [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]]
#else
#define TACIT_LANES \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")]]
#endif

namespace tacit::ops {

inline constexpr size_t kWidth = 16;

// A mask of the first n of 16 lanes.
TACIT_LANES inline __mmask16 FirstLanes(size_t n) {
  return static_cast<__mmask16>(n >= kWidth ? 0xffff : (1u << n) - 1);
}

struct FloatLane {
  static constexpr size_t kNumbers = 1;
  TACIT_LANES static __m512 Add(__m512 sum, __m512 a, __m512 b) {
    return _mm512_fmadd_ps(a, b, sum);
  }
  // Loads the first lanes of a row of this many numbers, with zeros after them.
  TACIT_LANES static __m512 Along(const float* x, size_t numbers) {
    if (numbers >= kWidth) return _mm512_loadu_ps(x);
    return _mm512_maskz_loadu_ps(FirstLanes(numbers), x);
  }
};

struct Bf16Lane {
  static constexpr size_t kNumbers = 2;
  TACIT_LANES static __m512 Add(__m512 sum, __m512 a, __m512 b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  TACIT_LANES static __m512 Along(const float* x, size_t numbers) {
    const __m512 low = FloatLane::Along(x, numbers);
    const __m512 high =
        numbers > kWidth ? FloatLane::Along(x + kWidth, numbers - kWidth) : _mm512_setzero_ps();
    return reinterpret_cast<__m512>(_mm512_cvtne2ps_pbh(high, low));
  }
};

}  // namespace tacit::ops
