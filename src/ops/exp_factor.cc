// Computes the exponentials of a softmax, and rounds them on the way for the two products that they
// are factors of.
#include <algorithm>

#include "base/check.h"
#include "ops/lanes.h"
#include "ops/tile_gemm.h"

namespace tacit::ops {
namespace {

// The numbers of a row that are rounded at once, along it.
constexpr size_t kTaken = 2 * kWidth;

TACIT_LANES float LargestOf(const float* x, size_t n) {
  __m512 most[4];
  for (auto& m : most) m = _mm512_set1_ps(x[0]);
  size_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth)
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; ++v)
      most[v] = _mm512_max_ps(most[v], _mm512_loadu_ps(x + i + v * kWidth));
  for (; i < n; i += kWidth) {
    const __mmask16 first = FirstLanes(n - i);
    most[0] = _mm512_mask_max_ps(most[0], first, most[0], _mm512_maskz_loadu_ps(first, x + i));
  }
  return _mm512_reduce_max_ps(
      _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3])));
}

// Returns e^x for x <= 0, to 2e-7 + 6e-8 |x| of itself, and 0 far below 2^-126: 2^n times a
// polynomial in the difference of x log2(e) and its nearest integer n.
TACIT_LANES __m512 ExpOf(__m512 x) {
  const __m512 power =
      _mm512_max_ps(_mm512_set1_ps(-150.0f), _mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)));
  const __m512 n = _mm512_roundscale_ps(power, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(power, n);
  __m512 p = _mm512_set1_ps(1.32647267e-3f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.67151268e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.55073374e-2f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.40222421e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.93146978e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

// The exponentials of two rows of numbers, less the rows' maxima, rounded along and across.
struct ExpPair {
  __m512 max[2], sum[2];
  __m512i low, high;  // which of 2 x 32 rounded numbers stand next to each other, across

  TACIT_LANES ExpPair(float max0, float max1)
      : max{_mm512_set1_ps(max0), _mm512_set1_ps(max1)},
        sum{_mm512_setzero_ps(), _mm512_setzero_ps()},
        low(_mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7,
                             38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0)),
        high(_mm512_add_epi16(low, _mm512_set1_epi16(16))) {}

  // Rounds the first n <= 32 numbers and puts zeros after them.
  template <bool kCut>
  TACIT_LANES [[gnu::always_inline]] inline __m512i Round(size_t row, const float* x, size_t n) {
    __m512 e[2];
#pragma GCC unroll 2
    for (size_t v = 0; v < 2; ++v) {
      const size_t skipped = v * kWidth;
      const __mmask16 first = kCut ? FirstLanes(n > skipped ? n - skipped : 0) : 0xffff;
      e[v] = kCut ? _mm512_maskz_loadu_ps(first, x + skipped) : _mm512_loadu_ps(x + skipped);
      e[v] = ExpOf(_mm512_sub_ps(e[v], max[row]));
      if (kCut) e[v] = _mm512_maskz_mov_ps(first, e[v]);
      sum[row] = _mm512_add_ps(sum[row], e[v]);
    }
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(e[1], e[0]));
  }

  template <bool kCut>
  TACIT_LANES [[gnu::always_inline]] inline void Step(const float* const x[2], size_t c, size_t n,
                                                      float* const along[2], float* across) {
    const __m512i first = Round<kCut>(0, x[0] + c, n - c);
    const __m512i second = Round<kCut>(1, x[1] + c, n - c);
    _mm512_storeu_si512(along[0] + c / 2, first);
    _mm512_storeu_si512(along[1] + c / 2, second);
    _mm512_storeu_si512(across + c, _mm512_permutex2var_epi16(first, low, second));
    _mm512_storeu_si512(across + c + kWidth, _mm512_permutex2var_epi16(first, high, second));
  }
};

TACIT_LANES void RoundExps(const float* const x[2], size_t n, ExpRow* const rows[2],
                           float* const along[2], float* across) {
  ExpPair pair(rows[0]->max, rows[1]->max);
  size_t c = 0;
  for (; c + kTaken <= n; c += kTaken) pair.Step<false>(x, c, n, along, across);
  if (c < n) pair.Step<true>(x, c, n, along, across);
  for (size_t i = 0; i < 2; ++i) rows[i]->sum = _mm512_reduce_add_ps(pair.sum[i]);
}

}  // namespace

void TileGemm::ExpFactor(std::span<const float> bias, Matrix x, std::span<ExpRow> rows,
                         LeftFactor* factor) {
  TACIT_CHECK(precision_ == Precision::kBf16, "exponentials are rounded to bf16");
  TACIT_CHECK(bias.empty() || bias.size() == x.cols, "one bias per column");
  TACIT_CHECK(rows.size() == x.rows, "a maximum and a sum per row");
  const size_t cols = (x.cols + kTaken - 1) / kTaken * kTaken, even = x.rows + x.rows % 2;
  factor->along.Reset(even, cols / 2);
  factor->across.Reset(even / 2, cols);
  // Goes backward from the last rows, which were written last and are still in the cache. An odd
  // last row is paired with a copy of itself, which products only multiply by 0.
  for (size_t pair = even / 2; pair-- > 0;) {
    const size_t place[2] = {2 * pair, std::min(2 * pair + 1, x.rows - 1)};
    for (size_t r = place[0]; r <= place[1]; ++r) {
      float* row = x.Row(r);
      for (size_t c = 0; c < bias.size(); ++c) row[c] += bias[c];
      rows[r].max = LargestOf(row, x.cols);
    }
    const float* const from[2] = {x.Row(place[0]), x.Row(place[1])};
    ExpRow* const of[2] = {&rows[place[0]], &rows[place[1]]};
    const Matrix lanes = factor->along.view();
    float* const along[2] = {lanes.Row(2 * pair), lanes.Row(2 * pair + 1)};
    RoundExps(from, x.cols, of, along, factor->across.view().Row(pair));
  }
}

}  // namespace tacit::ops
