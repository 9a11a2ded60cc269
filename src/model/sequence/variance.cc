#include "model/sequence/variance.h"

#include "base/check.h"

namespace tacit::model {

// Noise by factors, Z_L R + L Z_R - L L^T Z_L R, has its variance in the r (in + out - r)
// dimensions of what L and R span, and none in the others. Any number of it has the mean over all:
// exactly so on average over directions, for any input.
LayerNoise ParameterNoise::Of(const LinearLayer& layer) const {
  LayerNoise noise{weight_variance, weight_variance};
  if (!FactorsSave(factor_rank, layer.in, layer.out) || factor_rank == 0) return noise;
  const auto spanned = static_cast<float>(factor_rank * (layer.in + layer.out - factor_rank));
  noise.weights *= spanned / static_cast<float>(layer.in * layer.out);
  return noise;
}

Status LinearVariance(ops::UnitOps& ops, ops::ConstMatrix mean, ops::ConstMatrix variance,
                      ops::ConstMatrix squares, size_t first, LayerNoise noise, ops::Matrix out) {
  TACIT_CHECK(mean.rows == variance.rows && mean.cols == variance.cols, "a variance per number");
  const ops::ConstMatrix columns(squares.data + first, squares.rows, out.cols, squares.stride);
  TACIT_RETURN_IF_ERROR(
      ops.Gemm(ops::Transpose::kNo, variance, ops::Transpose::kNo, columns, 0, out));
  for (size_t r = 0; r < out.rows; ++r) {
    const float* m = mean.Row(r);
    const float* v = variance.Row(r);
    float length = 0;
#pragma omp simd reduction(+ : length)
    for (size_t c = 0; c < mean.cols; ++c) length += m[c] * m[c] + v[c];
    const float own = noise.weights * length + noise.biases;
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
