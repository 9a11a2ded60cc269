#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "base/result.h"
#include "ops/backend.h"
#include "ops/matrix_buffer.h"

namespace tacit::ops {

// A row's maximum and sum, which ExpRows and ExpFactor return beside its exponentials: softmax is
// exp / sum, and the logarithm of the normaliser is max + log(sum).
struct ExpRow {
  float max = 0;
  float sum = 0;
};

// The right factor of many products, prepared once by UnitOps::Prepare; all workers' ops of that
// kind read it.
struct RightFactor {
  Transpose transpose = Transpose::kNo;
  ConstMatrix matrix;  // as it was given; must outlive the factor
  // The matrix in another form, for ops that read one: see tile_gemm.h.
  ConstMatrix lanes;
  MatrixBuffer<float> room;
};

// The left factor of two products, as it is and transposed: the result of UnitOps::ExpFactor.
struct LeftFactor {
  ConstMatrix matrix;  // without numbers where the ops read other forms of it
  // The other forms: see tile_gemm.h.
  MatrixBuffer<float> along, across;
};

// The arithmetic of one worker on one unit. If a unit is large enough to fill a core for
// milliseconds (a user's sequence), a model processes its units one at a time: forward, backward
// and clip while everything is in the caches, with the workers on different units in parallel.
// Calls run on the calling thread alone. As for Backend, there is a reference of plain loops and a
// fast one, and one contract suite for both. One object per worker; not thread-safe.
class UnitOps {
 public:
  virtual ~UnitOps() = default;

  // c = op(a) op(b) + beta c; beta is 0 or 1. An empty inner dimension is a sum of nothing. If the
  // ops are of bf16, each factor is rounded to it first; products and sums are f32.
  virtual Status Gemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
                      Matrix c) = 0;
  // The same with prepared factors; by default it multiplies the matrices they were made of.
  virtual Status Gemm(Transpose ta, ConstMatrix a, const RightFactor& b, float beta, Matrix c) {
    return Gemm(ta, a, b.transpose, b.matrix, beta, c);
  }
  virtual Status Gemm(Transpose ta, const LeftFactor& a, const RightFactor& b, float beta,
                      Matrix c) {
    TACIT_CHECK(a.matrix.data != nullptr, "factors are made by ops of the same kind");
    return Gemm(ta, a.matrix, b, beta, c);
  }
  virtual void Prepare(Transpose tb, ConstMatrix b, RightFactor* factor) {
    factor->transpose = tb;
    factor->matrix = b;
  }
  // out += sum_r weight[r] a[r,:]; both are factors of a product.
  virtual Status AddWeightedRows(std::span<const float> weight, const LeftFactor& a,
                                 std::span<float> out) {
    TACIT_CHECK(a.matrix.data != nullptr, "factors are made by ops of the same kind");
    return Gemm(Transpose::kNo, {weight.data(), 1, weight.size()}, Transpose::kNo, a.matrix, 1,
                {out.data(), 1, out.size()});
  }
  // Rounds x to what a product sees of it.
  virtual void RoundAsFactor(std::span<float> x) = 0;

  // x[r,:] += bias, then max(x, 0) when relu.
  virtual void AddBias(Matrix x, std::span<const float> bias, bool relu) = 0;
  // grad[r,c] = 0 where activation[r,c] <= 0.
  virtual void ReluBackward(ConstMatrix activation, Matrix grad) = 0;
  // to += from.
  virtual void Add(ConstMatrix from, Matrix to) = 0;
  // out[c] += sum_r x[r,c], rows in order.
  virtual void ColumnSums(ConstMatrix x, std::span<float> out) = 0;

  // Normalises each row x by its mean m and variance s over the columns: normal = (x - m) / sqrt(s
  // + epsilon), inverse[r] = 1 / sqrt(s + epsilon), out = gain * normal + bias. `out` may be x.
  virtual void LayerNorm(ConstMatrix x, std::span<const float> gain, std::span<const float> bias,
                         float epsilon, Matrix normal, std::span<float> inverse, Matrix out) = 0;
  // Turns the gradient of `out` into that of x, in place; adds to the gradients of gain and bias.
  virtual void LayerNormBackward(ConstMatrix normal, std::span<const float> inverse,
                                 std::span<const float> gain, Matrix grad,
                                 std::span<float> gain_grad, std::span<float> bias_grad) = 0;

  // Row r of x holds the products of query first + r with keys 0, 1, ...; keys after the query
  // itself are ignored. Replaces the row by softmax(scale * x - penalty), zero after the query. An
  // empty penalty is zero.
  virtual void CausalSoftmax(size_t first, float scale, ConstMatrix penalty, Matrix x) = 0;
  // Turns the gradient of the softmax s into that of the products: scale * s * (grad - <grad, s>),
  // zero after the query.
  virtual void CausalSoftmaxBackward(size_t first, float scale, ConstMatrix s, Matrix grad) = 0;
  // penalty = min(factor * penalty, most), on the entries that CausalSoftmax reads.
  virtual void LimitPenalty(size_t first, float factor, float most, Matrix penalty) = 0;

  // x[r,:] = exp(x[r,:] + bias - max), the maximum being over the row; an empty bias is zero.
  virtual void ExpRows(std::span<const float> bias, Matrix x, std::span<ExpRow> rows) = 0;

  // The same for exponentials that only serve as a factor of products: x itself is used up.
  virtual void ExpFactor(std::span<const float> bias, Matrix x, std::span<ExpRow> rows,
                         LeftFactor* factor) {
    ExpRows(bias, x, rows);
    factor->matrix = x;
  }

  // sum x^2, in double inside.
  virtual double SquaredNorm(std::span<const float> x) = 0;
  // out += factor * x.
  virtual void AddScaled(float factor, std::span<const float> x, std::span<float> out) = 0;
  // sums[i] += factor * x[i], rounded to the nearest integer. REQUIRES |factor x[i]| <= 2^50.
  virtual void AddRounded(float factor, std::span<const float> x, std::span<int64_t> sums) = 0;

  // Replaces `variance` by that of max(X, 0), for a normal X of this mean and variance.
  virtual void ReluVariance(ConstMatrix mean, Matrix variance) = 0;
};

// These make the objects that Backend::MakeUnitOps returns.
std::unique_ptr<UnitOps> MakeReferenceUnitOps(Precision precision);
std::unique_ptr<UnitOps> MakeCpuUnitOps(Precision precision);

}  // namespace tacit::ops
