#include "model/sequence/variance.h"

#include "base/check.h"

namespace tacit::model {

Status LinearVariance(ops::UnitOps& ops, ops::ConstMatrix mean, ops::ConstMatrix variance,
                      ops::ConstMatrix squares, size_t first, float weight_variance,
                      ops::Matrix out) {
  TACIT_CHECK(mean.rows == variance.rows && mean.cols == variance.cols, "a variance per number");
  const ops::ConstMatrix columns(squares.data + first, squares.rows, out.cols, squares.stride);
  TACIT_RETURN_IF_ERROR(
      ops.Gemm(ops::Transpose::kNo, variance, ops::Transpose::kNo, columns, 0, out));
  for (size_t r = 0; r < out.rows; ++r) {
    const float* m = mean.Row(r);
    const float* v = variance.Row(r);
    float length = 1;  // the bias is the weight of a constant 1
#pragma omp simd reduction(+ : length)
    for (size_t c = 0; c < mean.cols; ++c) length += m[c] * m[c] + v[c];
    const float own = weight_variance * length;
    float* to = out.Row(r);
#pragma GCC ivdep
    for (size_t c = 0; c < out.cols; ++c) to[c] += own;
  }
  return {};
}

void LayerNormVariance(std::span<const float> inverse, std::span<const float> gain,
                       ops::Matrix variance) {
  for (size_t r = 0; r < variance.rows; ++r) {
    float* v = variance.Row(r);
    float mean = 0;
#pragma omp simd reduction(+ : mean)
    for (size_t c = 0; c < variance.cols; ++c) mean += v[c];
    mean /= static_cast<float>(variance.cols);
    const float factor = 1 / (1 / (inverse[r] * inverse[r]) + mean);
    const float* g = gain.data();
#pragma GCC ivdep
    for (size_t c = 0; c < variance.cols; ++c) v[c] *= g[c] * g[c] * factor;
  }
}

}  // namespace tacit::model
