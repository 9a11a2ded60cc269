#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <span>

#include "ops/backend.h"
#include "ops/bf16.h"
#include "ops/row_gradient_norm.h"

// The loops of the CPU backend, on one range of rows each. Written so that the compiler turns them
// into vector code: they stream matrices larger than the second-level cache, where AVX2 already
// waits for memory (docs/internals/ops.md), so there is one version of each.
namespace tacit::ops::loops {

inline float Widen(float x) { return x; }
inline float Widen(Bf16 x) { return FromBf16(x); }
inline void Narrow(float x, float* out) { *out = x; }
inline void Narrow(float x, Bf16* out) { *out = ToBf16(x); }

// out = round(max(x + bias, 0)); bias may be null; x and out may be the same row.
template <bool kRelu, class Out>
void BiasRow(const float* x, const float* bias, size_t cols, Out* out) {
#pragma GCC ivdep
  for (size_t c = 0; c < cols; ++c) {
    const float y = bias == nullptr ? x[c] : x[c] + bias[c];
    Narrow(kRelu && y < 0 ? 0.0f : y, out + c);
  }
}

template <class Out>
void Bias(ConstMatrix x, const float* bias, bool relu, MatrixView<Out> out) {
  for (size_t r = 0; r < x.rows; ++r) {
    if (relu) {
      BiasRow<true>(x.Row(r), bias, x.cols, out.Row(r));
    } else {
      BiasRow<false>(x.Row(r), bias, x.cols, out.Row(r));
    }
  }
}

template <class T>
void ReluBackward(MatrixView<const T> activation, ConstMatrix grad, MatrixView<T> out) {
  for (size_t r = 0; r < grad.rows; ++r) {
    const T* act = activation.Row(r);
    const float* in = grad.Row(r);
    T* to = out.Row(r);
#pragma GCC ivdep
    for (size_t c = 0; c < grad.cols; ++c) Narrow(Widen(act[c]) <= 0 ? 0.0f : in[c], to + c);
  }
}

template <class T>
void ScaleRows(const float* scale, MatrixView<const T> x, MatrixView<T> out) {
  for (size_t r = 0; r < x.rows; ++r) {
    const T* from = x.Row(r);
    T* to = out.Row(r);
    const float factor = scale[r];
#pragma GCC ivdep
    for (size_t c = 0; c < x.cols; ++c) Narrow(factor * Widen(from[c]), to + c);
  }
}

// Adds x / step, rounded to the nearest integer; numbers beyond 2^50, and what is no number, count
// as 2^50. In a double of the size of 1.5 * 2^52 steps the last bit is a step, so an addition
// rounds: the compiler makes vector code of that, but not of a conversion. REQUIRES a power of two.
template <class T>
void AddRounded(double step, const T* x, size_t size, int64_t* sums) {
  const double to_steps = 0x1.8p52 * step;
  const auto most = static_cast<T>(0x1p50 * step);
  const auto zero = std::bit_cast<int64_t>(to_steps);
#pragma GCC ivdep
  for (size_t i = 0; i < size; ++i) {
    const T above = std::max(-most, x[i]);  // a NaN comes to its first argument
    const T bounded = std::min(most, above);
    sums[i] += std::bit_cast<int64_t>(double{bounded} + to_steps) - zero;
  }
}

// <x, y> in double. Four sums side by side: one alone would wait for its own additions.
[[gnu::always_inline]] inline double Dot(const float* x, const float* y, size_t cols) {
  const size_t quarter = cols / 4;
  const float *x1 = x + quarter, *x2 = x1 + quarter, *x3 = x2 + quarter;
  const float *y1 = y + quarter, *y2 = y1 + quarter, *y3 = y2 + quarter;
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (size_t c = 0; c < quarter; ++c) {
    s0 += double{x[c]} * double{y[c]};
    s1 += double{x1[c]} * double{y1[c]};
    s2 += double{x2[c]} * double{y2[c]};
    s3 += double{x3[c]} * double{y3[c]};
  }
  for (size_t c = 4 * quarter; c < cols; ++c) s0 += double{x[c]} * double{y[c]};
  return (s0 + s1) + (s2 + s3);
}

// Two bf16 of a row, read at once: widening both is then a shift and a mask, without shuffles. Code
// that uses the type names it, because `auto` would lose the alignment.
using Bf16Pair [[gnu::may_alias, gnu::aligned(2)]] = uint32_t;

inline float LowerOf(Bf16Pair pair) { return std::bit_cast<float>(pair << 16); }
inline float UpperOf(Bf16Pair pair) { return std::bit_cast<float>(pair & 0xffff0000u); }

// The same. Products are of doubles, here too: a float holds the 16 bits of one, but not the
// exponent of two small numbers, and a factor that vanished would let a unit pass its clip.
[[gnu::always_inline]] inline double Dot(const Bf16* x, const Bf16* y, size_t cols) {
  const size_t half = cols / 4;  // in pairs
  const Bf16Pair* x0 = reinterpret_cast<const Bf16Pair*>(x);
  const Bf16Pair* x1 = x0 + half;
  const Bf16Pair* y0 = reinterpret_cast<const Bf16Pair*>(y);
  const Bf16Pair* y1 = y0 + half;
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (size_t c = 0; c < half; ++c) {
    s0 += double{LowerOf(x0[c])} * double{LowerOf(y0[c])};
    s1 += double{UpperOf(x0[c])} * double{UpperOf(y0[c])};
    s2 += double{LowerOf(x1[c])} * double{LowerOf(y1[c])};
    s3 += double{UpperOf(x1[c])} * double{UpperOf(y1[c])};
  }
  for (size_t c = 4 * half; c < cols; ++c) s0 += double{FromBf16(x[c])} * double{FromBf16(y[c])};
  return (s0 + s1) + (s2 + s3);
}

// <x, x>, with which the compiler loads and widens every number once.
template <class T>
[[gnu::always_inline]] inline double SquaredNorm(const T* x, size_t cols) {
  return Dot(x, x, cols);
}

// |A^T G|^2 of one unit's rows [begin, end), from the gradient itself, formed a strip at a time.
template <class T>
double MaterialisedNorm(MatrixView<const T> a, MatrixView<const T> g, size_t begin, size_t end) {
  constexpr size_t kStrip = 128;
  double squared = 0;
  for (size_t i = 0; i < a.cols; ++i)
    for (size_t first = 0; first < g.cols; first += kStrip) {
      const size_t cols = std::min(kStrip, g.cols - first);
      double strip[kStrip] = {};
      for (size_t r = begin; r < end; ++r) {
        const double factor = Widen(a.Row(r)[i]);
        const T* row = g.Row(r) + first;
#pragma omp simd
        for (size_t j = 0; j < cols; ++j) strip[j] += factor * double{Widen(row[j])};
      }
      for (size_t j = 0; j < cols; ++j) squared += strip[j] * strip[j];
    }
  return squared;
}

// The same from products of rows: a pair of rows costs a.cols + g.cols products, while forming the
// gradient costs a.cols * g.cols a row. If rows nearly cancel, the products' sum is a difference of
// large terms, off by up to 2^-40 of (sum of |a_s| |g_s|)^2, and a clip would let through what it
// does not see. The gradient is then formed and its norm taken, as it is for a unit of more
// rows, where this costs less.
template <class T>
double GramNorm(MatrixView<const T> a, MatrixView<const T> g, size_t begin, size_t end) {
  const size_t rows = end - begin;
  if (rows > 2 * a.cols * g.cols / (a.cols + g.cols) + 1) return MaterialisedNorm(a, g, begin, end);
  double sum = 0, lengths = 0;
  for (size_t s = begin; s < end; ++s) {
    const double own =
        RowGradientNorm(SquaredNorm(a.Row(s), a.cols), SquaredNorm(g.Row(s), g.cols));
    sum += own;
    lengths += std::sqrt(own);
    for (size_t t = begin; t < s; ++t)
      sum += 2 * Dot(a.Row(s), a.Row(t), a.cols) * Dot(g.Row(s), g.Row(t), g.cols);
  }
  const bool cancels = rows > 1 && !(sum > 0x1p-18 * lengths * lengths);
  return cancels ? MaterialisedNorm(a, g, begin, end) : sum;
}

inline void LogisticLoss(float logit, float label, float* loss, float* dlogit) {
  const double x = logit;
  const double e = std::exp(-std::abs(x));
  *loss = static_cast<float>(std::max(x, 0.0) - x * label + std::log1p(e));
  *dlogit = static_cast<float>((x >= 0 ? 1 : e) / (1 + e) - label);
}

// Examples [begin, end) of a pooled gather.
inline void GatherSum(const Backend::Slots& s, std::span<float* const> row, Matrix x, size_t begin,
                      size_t end) {
  constexpr size_t kAhead = 24;  // rows are cold: ask for them about one example in advance
  const size_t slots = s.dim.size();
  if (slots == 0) return;
  uint32_t entry = begin == 0 ? 0 : s.slot_end[begin * slots - 1];
  const uint32_t entries = s.slot_end[end * slots - 1];
  for (size_t r = begin; r < end; ++r) {
    for (size_t slot = 0; slot < slots; ++slot) {
      const size_t dim = s.dim[slot];
      float* to = x.Row(r) + s.column[slot];
      const uint32_t first = entry, last = s.slot_end[r * slots + slot];
      if (first == last) std::fill_n(to, dim, 0.0f);
      for (; entry < last; ++entry) {
        if (entry + kAhead < entries) __builtin_prefetch(row[s.slot_row[entry + kAhead]]);
        const float* from = row[s.slot_row[entry]];
        if (entry == first) {
          std::copy_n(from, dim, to);
        } else {
#pragma GCC ivdep
          for (size_t c = 0; c < dim; ++c) to[c] += from[c];
        }
      }
    }
  }
}

}  // namespace tacit::ops::loops
