#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/learn/product_choice.h"
#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "train/engines/click_engine.h"
#include "train/engines/gpu.h"

namespace tacit::cuda {

struct DeviceClickOptions {
  train::ClickEngineOptions click;
  // Examples that go through the model at a time. A larger step goes through in parts of whole
  // units; a unit of more examples than this makes a step fail.
  uint32_t chunk_examples = train::kGpuChunkExamples;
  // The most that a step's sizes are rounded up to multiples of (step_packing.h), so that few
  // graphs do for all of them.
  uint32_t round_examples = train::kGpuRoundExamples;
  // Without it all work is on one stream, one launch after the other: the same bits, more slowly.
  bool overlap = true;
  train::GpuRowOptions rows = {};
  ProductOptions products = {};  // of a model in bf16
};

// The private step of a click model on one GPU, its tables in its memory, whole or cached. What it
// releases has the law that the CPU's code gives it, under a charge that knows nothing of the
// device: the same grid and threshold, noise drawn on the device under a key of the step's own.
//
// `rows` and `dense` are the model as of the last commit. All references must outlive the engine.
// Fails with kRefused if the mechanism or the optimiser has no form for a GPU, or the tables have
// none for this mechanism, and with kCorruption if the device does not compute noise as the CPU
// does.
Result<std::unique_ptr<train::ClickEngine>> MakeDeviceClickEngine(
    Device& device, DeviceClickOptions options, mechanism::Mechanism& mechanism,
    noise::NoiseSource& noise, store::WorkingRows& rows, const store::DenseState& dense);

}  // namespace tacit::cuda
