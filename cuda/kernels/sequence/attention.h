#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// Causal attention within crops, all heads, as model::CausalAttention computes it.
namespace tacit::cuda {

struct AttentionShape {
  // The rows of all units lie side by side. A crop's rows end at crop_end[c]; none has more than
  // `longest`.
  DeviceSpan<const uint32_t> crop_end = {};
  uint32_t longest = 0;
  uint32_t heads = 1;
  bool rounds = false;     // factors of products to bf16
  bool corrected = false;  // logits are, and AttendVariance reads the shares
};

inline constexpr uint32_t kTileHeadMost = 64;
// Says whether the passes go through tiles on tensor cores (attention_tiles.h): factors are
// rounded, and a head has at most 64 numbers. Else a warp works on a query, and shares are stored.
inline bool GoesThroughTiles(const AttentionShape& shape, uint32_t width) {
  return shape.rounds && width / shape.heads <= kTileHeadMost;
}
// The numbers that a query of a head keeps for the backward pass, and those that it works with.
inline uint32_t KeptNumbers(const AttentionShape& shape, uint32_t width) {
  return GoesThroughTiles(shape, width) && !shape.corrected ? 2 : shape.longest;
}
inline uint32_t WorkNumbers(const AttentionShape& shape, uint32_t width) {
  return GoesThroughTiles(shape, width) ? 1 : shape.longest;
}

// The correction of logits for the noise in the parameters: min(factor sum q^2 v, most) is taken
// off each, v being the variance of its key.
struct AttentionCorrection {
  DeviceMatrix<const float> key_variance = {};  // as wide as the keys; no data: none is corrected
  float factor = 0, most = 0;
};

// `qkv` has queries, keys and values side by side, each as wide as `out`. kept: heads x rows, one
// head's rows behind the other's, KeptNumbers each, for the backward pass: where `shape` has
// corrections, or else does not go through tiles, the shares that a query gives to the keys of its
// crop. REQUIRES heads that divide the width, and fewer than 65,536; a correction where and only
// where `shape` says so.
Status Attend(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
              const AttentionCorrection& correction, DeviceMatrix<float> kept,
              DeviceMatrix<float> out);
// The variance of `out` from that of the values: sum share^2 v. REQUIRES a shape with corrections.
Status AttendVariance(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> shares,
                      DeviceMatrix<const float> value_variance, DeviceMatrix<float> out);
// From the gradient of `out` that of `qkv`; `work` has as many rows as `kept`, WorkNumbers each.
// The correction counts as a constant.
Status AttendBackward(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
                      DeviceMatrix<const float> kept, DeviceMatrix<const float> grad,
                      DeviceMatrix<float> work, DeviceMatrix<float> qkv_grad);

}  // namespace tacit::cuda
