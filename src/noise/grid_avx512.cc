// Compiled for AVX-512 (see CMakeLists.txt): called only where the processor has it.
#include "noise/grid_gaussian.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#include "noise/grid_kernel.h"
#include "noise/grid_portable.h"

namespace tacit::noise {
namespace {

struct Avx512 {
  using Real = __m512d;
  using Word [[gnu::vector_size(64)]] = uint64_t;
  using Lanes = __mmask8;
  static constexpr size_t kLanes = 8;

  TACIT_INLINE static Real All(double x) { return _mm512_set1_pd(x); }
  TACIT_INLINE static Word Load(const void* from) {
    return reinterpret_cast<Word>(_mm512_loadu_si512(from));
  }
  TACIT_INLINE static void Store(double* to, Real x) { _mm512_storeu_pd(to, x); }
  TACIT_INLINE static void Store(uint64_t* to, Word x) {
    _mm512_storeu_si512(to, reinterpret_cast<__m512i>(x));
  }
  TACIT_INLINE static void StoreFloats(float* to, Real x) {
    _mm256_storeu_ps(to, _mm512_cvtpd_ps(x));
  }
  TACIT_INLINE static Real FromBits(Word x) { return reinterpret_cast<Real>(x); }
  TACIT_INLINE static Real Fma(Real a, Real b, Real c) { return _mm512_fmadd_pd(a, b, c); }
  TACIT_INLINE static Real Sqrt(Real x) { return _mm512_sqrt_pd(x); }
  TACIT_INLINE static Real FromWord(Word n) { return __builtin_convertvector(n, Real); }
  TACIT_INLINE static Real FromAngle(Word n) { return FromWord(n & 0x3ffffffffffff800); }
  TACIT_INLINE static Real Exponent(Real x) { return _mm512_getexp_pd(x); }
  TACIT_INLINE static Real Mantissa(Real x) {
    return _mm512_getmant_pd(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  }
  TACIT_INLINE static Real NotBelowZero(Real x) { return _mm512_max_pd(x, _mm512_setzero_pd()); }
  TACIT_INLINE static Word FloorBits(Real a, Real b, double c) {
    return reinterpret_cast<Word>(
        _mm512_fmadd_round_pd(a, b, All(c), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
  }
  TACIT_INLINE static Real FlipSign(Real x, Word sign) {
    return FromBits(reinterpret_cast<Word>(x) ^ sign);
  }
  TACIT_INLINE static Lanes Test(Word n, uint64_t bit) {
    return _mm512_test_epi64_mask(reinterpret_cast<__m512i>(n),
                                  _mm512_set1_epi64(static_cast<int64_t>(bit)));
  }
  TACIT_INLINE static Real Choose(Lanes lanes, Real yes, Real no) {
    return _mm512_mask_blend_pd(lanes, no, yes);
  }
};

// Fetches the memory of the next call, which continues where this one ends, while this call
// computes (a sixth faster if no cache holds the values). Past the end it does nothing.
TACIT_INLINE void PrefetchNext(const uint64_t* value, size_t pairs) {
  const auto address = reinterpret_cast<uintptr_t>(value) + 2 * pairs * sizeof(uint64_t);
  __builtin_prefetch(reinterpret_cast<const void*>(address), 1);
}

}  // namespace

void FillNormalsAvx512(const uint32_t* bits, double* first, double* second, size_t pairs) {
  const auto* words = reinterpret_cast<const KeyWord*>(bits);
  size_t i = 0;
  for (; i + Avx512::kLanes <= pairs; i += Avx512::kLanes)
    FillNormalsAt<Avx512>(words + i, first + i, second + i, pairs);
  for (; i < pairs; ++i) FillNormalsAt<Portable>(words + i, first + i, second + i, pairs);
}

void AddGridAvx512(const uint32_t* bits, double stddev, int dither_bits, int64_t* first,
                   int64_t* second, size_t pairs) {
  const auto* words = reinterpret_cast<const KeyWord*>(bits);
  auto* x = reinterpret_cast<uint64_t*>(first);
  auto* y = reinterpret_cast<uint64_t*>(second);
  const GridScale scale = MakeGridScale(stddev, dither_bits);
  size_t i = 0;
  for (; i + Avx512::kLanes <= pairs; i += Avx512::kLanes) {
    AddGridAt<Avx512>(words + i, scale, x + i, y + i, pairs);
    PrefetchNext(x + i, pairs);
    PrefetchNext(y + i, pairs);
  }
  for (; i < pairs; ++i) AddGridAt<Portable>(words + i, scale, x + i, y + i, pairs);
}

void FillGridAvx512(const uint32_t* bits, double stddev, int dither_bits, double factor,
                    float* first, float* second, size_t pairs) {
  const auto* words = reinterpret_cast<const KeyWord*>(bits);
  const GridScale scale = MakeGridScale(stddev, dither_bits);
  size_t i = 0;
  for (; i + Avx512::kLanes <= pairs; i += Avx512::kLanes)
    FillGridAt<Avx512>(words + i, scale, factor, first + i, second + i, pairs);
  for (; i < pairs; ++i)
    FillGridAt<Portable>(words + i, scale, factor, first + i, second + i, pairs);
}

}  // namespace tacit::noise

#endif
