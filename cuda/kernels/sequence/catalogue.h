#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// Softmax over the catalogue at each row that predicts, as model::OutputLayer has it: products are
// with e = exp(logit - max) alone, and w / s is applied to the states, w being the row's weight and
// s the sum of its e. T is float or uint16_t, a bf16, as which factors of products are kept.
//
// A spread share takes w a / M off the gradient of each of the M logits, which is a s / M off its
// e.
namespace tacit::cuda {

struct PredictedRows {
  DeviceSpan<const uint32_t> target = {};  // the item
  DeviceSpan<const float> weight = {};
  float spread = 0;  // share a of the target that is spread evenly over the catalogue
};
struct SoftmaxRows {
  DeviceSpan<float> loss = {};       // weighted
  DeviceSpan<float> factor = {};     // w / s
  DeviceSpan<float> minus_sum = {};  // -s (1 - a): of e, at the target
};

// From logits, to which `bias` is added if there is one: e less what is spread, and numbers of each
// row.
template <class T>
Status ExpRows(Stream& stream, DeviceMatrix<const float> logits, DeviceSpan<const float> bias,
               const PredictedRows& rows, DeviceMatrix<T> e, const SoftmaxRows& out);
// scaled[r] = factor[r] * states[r], kept as a factor.
template <class T>
Status ScaleStates(Stream& stream, DeviceSpan<const float> factor, DeviceMatrix<const float> states,
                   DeviceMatrix<T> scaled);
// The gradient of the states, in place of the products of e and the table: factor[r] * products[r]
// less the weighted row of the target, as products see it.
template <class T>
Status StateGradients(Stream& stream, const PredictedRows& rows, DeviceSpan<const float> factor,
                      DeviceMatrix<const T> table, DeviceMatrix<float> products);

}  // namespace tacit::cuda
