#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/device.h"
#include "model/sequence/layout.h"
#include "noise/noise.h"
#include "train/engines/sequence_engine.h"

namespace tacit::cuda {

struct DeviceSequenceOptions {
  train::SequenceEngineOptions sequence;
  // Positions that go through the model at a time, fewer for large catalogues. A step of more goes
  // through in waves of whole units, with the same bits; a unit of more is a wave by itself.
  uint32_t wave_positions = train::kGpuWavePositions;
  // Positions whose logits are formed at a time; 0: as many as stay in the second-level cache.
  uint32_t logit_rows = 0;
};

// Adds the device memory that steps of the planned size take, and that the engine takes for them
// when it is made.
Status PlanSequenceSteps(const DeviceSequenceOptions& options, const model::SequenceLayout& layout,
                         MemoryNeed* need);

// The private step of a sequence model on one GPU: a transformer in f32 or bf16. What a unit adds
// does not depend on the others in its step, in no bit: every product of a row is summed in the
// same order beside any other rows.
//
// Beside what it is held against (model::SequenceModel), in bf16 the biases' gradients are sums of
// rounded rows. `device` and `noise` must outlive it. Fails with kRefused for options without such
// a form, and with kCorruption if the device does not compute noise as the CPU does.
Result<std::unique_ptr<train::SequenceEngine>> MakeDeviceSequenceEngine(
    Device& device, const DeviceSequenceOptions& options, noise::NoiseSource& noise);

}  // namespace tacit::cuda
