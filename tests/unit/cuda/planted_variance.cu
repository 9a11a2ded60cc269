// variance.cu with faults: each law goes through a function that may leave a part of it out.
#define EmbedVariance RightEmbedVariance
#define AddOwnVariance RightAddOwnVariance
#define LayerNormVariance RightLayerNormVariance
#define ReluVariance RightReluVariance
#include "cuda/kernels/reattention/variance.cu"
#undef EmbedVariance
#undef AddOwnVariance
#undef LayerNormVariance
#undef ReluVariance
#include "unit/cuda/planted_sequence.h"

namespace tacit::cuda {
namespace {

using testing::SequenceFault;

SequenceFault planted_variance = SequenceFault::kNone;

}  // namespace

void testing::PlantInVariance(SequenceFault fault) { planted_variance = fault; }

Status EmbedVariance(Stream& stream, DeviceSpan<const uint32_t> item,
                     DeviceSpan<const float> item_variance, float scale, float position_variance,
                     DeviceMatrix<float> out) {
  if (planted_variance == SequenceFault::kNoEmbedded) scale = 0;
  if (planted_variance == SequenceFault::kEmbeddedUnscaled) scale = 1;
  return RightEmbedVariance(stream, item, item_variance, scale, position_variance, out);
}

Status AddOwnVariance(Stream& stream, DeviceMatrix<const float> mean,
                      DeviceMatrix<const float> variance, float of_weights, float of_biases,
                      DeviceMatrix<float> out) {
  if (planted_variance == SequenceFault::kNoOwn) return {};
  if (planted_variance == SequenceFault::kOwnWithoutBias) of_biases = 0;
  return RightAddOwnVariance(stream, mean, variance, of_weights, of_biases, out);
}

Status LayerNormVariance(Stream& stream, DeviceSpan<const float> inverse,
                         DeviceSpan<const float> gain, DeviceMatrix<float> variance) {
  if (planted_variance == SequenceFault::kNoNormVariance) return {};
  return RightLayerNormVariance(stream, inverse, gain, variance);
}

Status ReluVariance(Stream& stream, DeviceMatrix<const float> mean, DeviceMatrix<float> variance) {
  if (planted_variance == SequenceFault::kNoReluVariance) return {};
  return RightReluVariance(stream, mean, variance);
}

}  // namespace tacit::cuda
