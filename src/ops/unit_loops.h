#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/bf16.h"
#include "ops/loops.h"
#include "ops/shapes.h"
#include "ops/unit_ops.h"
#include "ops/vector_math.h"

// The CPU's loops over one unit. The data are in the caches, so the width of vectors matters, and
// this file is compiled once for each width: for the target of the file that includes it, into that
// file alone. The headers that it includes are shared and must have been included before, for every
// processor.
namespace tacit::ops {
namespace {

// The number of columns up to and with a row's own place; the rest lies after the query.
inline size_t Visible(size_t first, size_t row, size_t cols) {
  return std::min(cols, first + row + 1);
}

inline float Largest(const float* x, size_t n) {
  float most = x[0];
#pragma omp simd reduction(max : most)
  for (size_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// x = exp(x - shift); returns the sum.
inline float Exponentiate(float* x, size_t n, float shift) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < n; ++i) {
    x[i] = Exp(x[i] - shift);
    sum += x[i];
  }
  return sum;
}

inline float Dot(const float* x, const float* y, size_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// All of UnitOps but the products.
class UnitLoops : public UnitOps {
 public:
  explicit UnitLoops(Precision precision) : precision_(precision) {}

  void RoundAsFactor(std::span<float> x) override {
    if (precision_ == Precision::kBf16)
      for (float& v : x) v = FromBf16(ToBf16(v));
  }

  void AddBias(Matrix x, std::span<const float> bias, bool relu) override {
    loops::Bias<float>(x, bias.empty() ? nullptr : bias.data(), relu, x);
  }
  void ReluBackward(ConstMatrix activation, Matrix grad) override {
    CheckSameShape(activation, grad);
    loops::ReluBackward<float>(activation, grad, grad);
  }
  void Add(ConstMatrix from, Matrix to) override {
    CheckSameShape(from, to);
    for (size_t r = 0; r < to.rows; ++r) {
      const float* in = from.Row(r);
      float* out = to.Row(r);
#pragma GCC ivdep
      for (size_t c = 0; c < to.cols; ++c) out[c] += in[c];
    }
  }
  void ColumnSums(ConstMatrix x, std::span<float> out) override {
    TACIT_CHECK(out.size() == x.cols, "one sum per column");
    for (size_t r = 0; r < x.rows; ++r) AddScaled(1, {x.Row(r), x.cols}, out);
  }

  void LayerNorm(ConstMatrix x, std::span<const float> gain, std::span<const float> bias,
                 float epsilon, Matrix normal, std::span<float> inverse, Matrix out) override {
    CheckSameShape(x, normal);
    CheckSameShape(x, out);
    const size_t n = x.cols;
    for (size_t r = 0; r < x.rows; ++r) {
      const float* in = x.Row(r);
      float* kept = normal.Row(r);
      float* to = out.Row(r);
      float mean = 0, variance = 0;
#pragma omp simd reduction(+ : mean)
      for (size_t c = 0; c < n; ++c) mean += in[c];
      mean /= static_cast<float>(n);
#pragma omp simd reduction(+ : variance)
      for (size_t c = 0; c < n; ++c) variance += (in[c] - mean) * (in[c] - mean);
      const float factor = 1 / std::sqrt(variance / static_cast<float>(n) + epsilon);
      inverse[r] = factor;
#pragma GCC ivdep
      for (size_t c = 0; c < n; ++c) {
        const float y = (in[c] - mean) * factor;
        kept[c] = y;
        to[c] = y * gain[c] + bias[c];
      }
    }
  }

  void LayerNormBackward(ConstMatrix normal, std::span<const float> inverse,
                         std::span<const float> gain, Matrix grad, std::span<float> gain_grad,
                         std::span<float> bias_grad) override {
    CheckSameShape(normal, grad);
    const size_t n = grad.cols;
    for (size_t r = 0; r < grad.rows; ++r) {
      const float* y = normal.Row(r);
      float* g = grad.Row(r);
      float sum = 0, projection = 0;
#pragma omp simd reduction(+ : sum, projection)
      for (size_t c = 0; c < n; ++c) {
        sum += g[c] * gain[c];
        projection += g[c] * gain[c] * y[c];
      }
      sum /= static_cast<float>(n);
      projection /= static_cast<float>(n);
#pragma GCC ivdep
      for (size_t c = 0; c < n; ++c) {
        gain_grad[c] += g[c] * y[c];
        bias_grad[c] += g[c];
        g[c] = inverse[r] * (g[c] * gain[c] - sum - y[c] * projection);
      }
    }
  }

  void CausalSoftmax(size_t first, float scale, ConstMatrix penalty, Matrix x) override {
    if (penalty.data != nullptr) CheckSameShape(penalty, x);
    for (size_t r = 0; r < x.rows; ++r) {
      const size_t n = Visible(first, r, x.cols);
      float* row = x.Row(r);
      if (penalty.data == nullptr) {
#pragma GCC ivdep
        for (size_t c = 0; c < n; ++c) row[c] *= scale;
      } else {
        const float* less = penalty.Row(r);
#pragma GCC ivdep
        for (size_t c = 0; c < n; ++c) row[c] = scale * row[c] - less[c];
      }
      const float factor = 1 / Exponentiate(row, n, Largest(row, n));
#pragma GCC ivdep
      for (size_t c = 0; c < n; ++c) row[c] *= factor;
      std::fill(row + n, row + x.cols, 0.0f);
    }
  }

  void CausalSoftmaxBackward(size_t first, float scale, ConstMatrix s, Matrix grad) override {
    CheckSameShape(s, grad);
    for (size_t r = 0; r < grad.rows; ++r) {
      const size_t n = Visible(first, r, grad.cols);
      const float* p = s.Row(r);
      float* g = grad.Row(r);
      const float mean = Dot(p, g, n);
#pragma GCC ivdep
      for (size_t c = 0; c < n; ++c) g[c] = scale * p[c] * (g[c] - mean);
      std::fill(g + n, g + grad.cols, 0.0f);
    }
  }

  void LimitPenalty(size_t first, float factor, float most, Matrix penalty) override {
    for (size_t r = 0; r < penalty.rows; ++r) {
      float* row = penalty.Row(r);
      const size_t n = Visible(first, r, penalty.cols);
#pragma GCC ivdep
      for (size_t c = 0; c < n; ++c) {
        const float x = factor * row[c];
        row[c] = x < most ? x : most;
      }
    }
  }

  void ExpRows(std::span<const float> bias, Matrix x, std::span<ExpRow> rows) override {
    TACIT_CHECK(bias.empty() || bias.size() == x.cols, "one bias per column");
    for (size_t r = 0; r < x.rows; ++r) {
      float* row = x.Row(r);
      if (!bias.empty()) AddScaled(1, bias, {row, x.cols});
      rows[r].max = Largest(row, x.cols);
      rows[r].sum = Exponentiate(row, x.cols, rows[r].max);
    }
  }

  double SquaredNorm(std::span<const float> x) override {
    return loops::SquaredNorm(x.data(), x.size());
  }

  void AddScaled(float factor, std::span<const float> x, std::span<float> out) override {
    const float* in = x.data();
    float* to = out.data();
#pragma GCC ivdep
    for (size_t i = 0; i < x.size(); ++i) to[i] += factor * in[i];
  }

  // Added to a number of magnitude below 2^51, 1.5 * 2^52 leaves the number rounded to an integer
  // in the low bits. The compiler makes vector code of that, but not of a conversion.
  void AddRounded(float factor, std::span<const float> x, std::span<int64_t> sums) override {
    constexpr double kToInteger = 0x1.8p52;
    const float* in = x.data();
    int64_t* to = sums.data();
#pragma GCC ivdep
    for (size_t i = 0; i < x.size(); ++i)
      to[i] += std::bit_cast<int64_t>(double{factor * in[i]} + kToInteger) -
               std::bit_cast<int64_t>(kToInteger);
  }

  void ReluVariance(ConstMatrix mean, Matrix variance) override {
    CheckSameShape(mean, variance);
    for (size_t r = 0; r < mean.rows; ++r) {
      const float* m = mean.Row(r);
      float* v = variance.Row(r);
#pragma GCC ivdep
      for (size_t c = 0; c < mean.cols; ++c) v[c] *= ReluVarianceRatio(m[c] / std::sqrt(v[c]));
    }
  }

 protected:
  const Precision precision_;
};

}  // namespace
}  // namespace tacit::ops
