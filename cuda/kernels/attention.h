#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/matrix.h"

// Causal attention within crops, all heads, as model::CausalAttention computes it.
namespace tacit::cuda {

struct AttentionShape {
  // The rows of all units lie side by side. A crop's rows end at crop_end[c]; none has more than
  // `longest`.
  DeviceSpan<const uint32_t> crop_end = {};
  uint32_t longest = 0;
  uint32_t heads = 1;
  bool rounds = false;  // factors of products to bf16
};

// The correction of logits for the noise in the parameters: min(factor sum q^2 v, most) is taken
// off each, v being the variance of its key.
struct AttentionCorrection {
  DeviceMatrix<const float> key_variance = {};  // as wide as the keys; no data: none is corrected
  float factor = 0, most = 0;
};

// `qkv` has queries, keys and values side by side, each as wide as `out`. shares: heads x rows, one
// head's rows behind the other's, `longest` numbers each: what a query gives to the keys of its
// crop, kept for the backward pass. REQUIRES heads that divide the width, and fewer than 65,536.
Status Attend(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
              const AttentionCorrection& correction, DeviceMatrix<float> shares,
              DeviceMatrix<float> out);
// The variance of `out` from that of the values: sum share^2 v.
Status AttendVariance(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> shares,
                      DeviceMatrix<const float> value_variance, DeviceMatrix<float> out);
// From the gradient of `out` that of `qkv`; `work` is as large as `shares`. The correction counts
// as a constant.
Status AttendBackward(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
                      DeviceMatrix<const float> shares, DeviceMatrix<const float> grad,
                      DeviceMatrix<float> work, DeviceMatrix<float> qkv_grad);

}  // namespace tacit::cuda
