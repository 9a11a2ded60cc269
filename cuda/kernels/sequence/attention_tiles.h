#pragma once

#include "base/result.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/sequence/attention.h"

// attention.h's passes through tiles in shared memory, on tensor cores. REQUIRES
// GoesThroughTiles(shape, width), and arguments that Attend and AttendBackward have checked.
namespace tacit::cuda {

// kept: the largest logit of a query, and one over the sum of its exponentials; its shares where
// `shape` has corrections.
Status AttendByTiles(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
                     const AttentionCorrection& correction, DeviceMatrix<float> kept,
                     DeviceMatrix<float> out);
// AttendByTiles and AttendBackwardByTiles without corrections, for matrices of bf16, whose numbers
// are the factors that those round theirs to: the same factors of products, half of the bytes.
// Results are rounded as AddBias would round them. They check their arguments, as Attend does.
Status AttendRounded(Stream& stream, const AttentionShape& shape, DeviceMatrix<const uint16_t> qkv,
                     DeviceMatrix<float> kept, DeviceMatrix<uint16_t> out);
Status AttendBackwardRounded(Stream& stream, const AttentionShape& shape,
                             DeviceMatrix<const uint16_t> qkv, DeviceMatrix<const float> kept,
                             DeviceMatrix<const uint16_t> grad, DeviceMatrix<float> work,
                             DeviceMatrix<uint16_t> qkv_grad);
Status AttendVarianceByTiles(Stream& stream, const AttentionShape& shape,
                             DeviceMatrix<const float> shares,
                             DeviceMatrix<const float> value_variance, DeviceMatrix<float> out);
// work: the mean of a query's gradients of shares, weighted with its shares.
Status AttendBackwardByTiles(Stream& stream, const AttentionShape& shape,
                             DeviceMatrix<const float> qkv, DeviceMatrix<const float> kept,
                             DeviceMatrix<const float> grad, DeviceMatrix<float> work,
                             DeviceMatrix<float> qkv_grad);

}  // namespace tacit::cuda
