#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// Logits over the catalogue at the rows that predict: a prior's, which the model's are added to,
// and a mask of what was seen, as model::LogitPrior and model::OutputLayer have them.
namespace tacit::cuda {

// Packed rows, crop by crop, and which of them predict: row `counted[i]` has row i of the logits.
struct PredictingRows {
  DeviceSpan<const uint32_t> item = {};      // read at the row
  DeviceSpan<const uint32_t> crop_end = {};  // per crop: the end of its rows
  DeviceSpan<const uint32_t> counted = {};
  DeviceSpan<const uint32_t> counted_end = {};  // per crop: the end of its rows that predict
};

// logit(b) = each[b] + sum over the items so far of decay^age table[item][b]; either may be empty.
struct PriorLogits {
  DeviceSpan<const float> each = {}, table = {};
  float decay = 0;
};

Status FillPrior(Stream& stream, const PredictingRows& rows, const PriorLogits& prior,
                 DeviceMatrix<float> logits);
// Makes the items of a row's crop so far impossible, except its target.
Status MaskSeen(Stream& stream, const PredictingRows& rows, DeviceSpan<const uint32_t> target,
                DeviceMatrix<float> logits);

}  // namespace tacit::cuda
