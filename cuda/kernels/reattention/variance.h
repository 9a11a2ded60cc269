#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// The spread of the parameters' noise through a transformer, by the laws of
// model/sequence/variance: a variance beside each number. Products are gemm.h's.
namespace tacit::cuda {

// out[r] = scale^2 item_variance[item[r]] + position_variance.
Status EmbedVariance(Stream& stream, DeviceSpan<const uint32_t> item,
                     DeviceSpan<const float> item_variance, float scale, float position_variance,
                     DeviceMatrix<float> out);
// Squares, kept as factors.
template <class T>
Status SquareAll(Stream& stream, DeviceMatrix<const float> x, DeviceMatrix<T> out);
// out[r] += w sum_k (mean[r][k]^2 + variance[r][k]) + b: what the noise of a layer's own weights,
// of variance w, and of its biases, b, adds.
Status AddOwnVariance(Stream& stream, DeviceMatrix<const float> mean,
                      DeviceMatrix<const float> variance, float of_weights, float of_biases,
                      DeviceMatrix<float> out);
// Takes variances through a normalised layer, in place; `inverse` is LayerNorm's.
Status LayerNormVariance(Stream& stream, DeviceSpan<const float> inverse,
                         DeviceSpan<const float> gain, DeviceMatrix<float> variance);
// Turns the variance of x, which is normal around `mean`, into that of max(x, 0).
Status ReluVariance(Stream& stream, DeviceMatrix<const float> mean, DeviceMatrix<float> variance);

}  // namespace tacit::cuda
