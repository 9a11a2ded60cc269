#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// Normalisation of a sequence model's rows, as ops::UnitOps has it; sums in double.
namespace tacit::cuda {

// The loops before and behind a normalisation that it does along the way, with their bits.
struct AlongNorm {
  DeviceMatrix<const float> plus = {};  // added to x, as AddMatrix does; no data: nothing is
  DeviceMatrix<uint16_t> rounded = {};  // the result, as AddBias rounds it; no data: nowhere
};

// normal = (x - mean) / sqrt(variance + epsilon) per row, inverse[r] = 1 / sqrt(variance +
// epsilon), out = gain * normal + bias. `out` may be x.
Status LayerNorm(Stream& stream, DeviceMatrix<const float> x, DeviceSpan<const float> gain,
                 DeviceSpan<const float> bias, float epsilon, DeviceMatrix<float> normal,
                 DeviceSpan<float> inverse, DeviceMatrix<float> out, const AlongNorm& along = {});
// Per unit, whose rows end at unit_end[u]: the gradient of the gains and behind it that of the
// biases, in row u of `out`, given the gradient of LayerNorm's `out`.
Status LayerNormUnitGradients(Stream& stream, DeviceSpan<const uint32_t> unit_end,
                              DeviceMatrix<const float> normal, DeviceMatrix<const float> grad,
                              DeviceMatrix<float> out);
// Turns the gradient of LayerNorm's `out` into that of its x, in place, and rounds it as well where
// `rounded` has data.
Status LayerNormBackward(Stream& stream, DeviceMatrix<const float> normal,
                         DeviceSpan<const float> inverse, DeviceSpan<const float> gain,
                         DeviceMatrix<float> grad, DeviceMatrix<uint16_t> rounded = {});

}  // namespace tacit::cuda
