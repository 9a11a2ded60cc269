#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/learn/click_engine.h"
#include "cuda/learn/sequence_engine.h"
#include "model/dense_net.h"
#include "model/pctr.h"
#include "train/engines/click_engine.h"
#include "train/engines/gpu.h"

// The device memory that engines take when they are made, from what they are made of. A test holds
// it to what they take (tests/unit/cuda/engine_need_test.cc), of steps of the planned size as well.
namespace tacit::cuda {

// The layers of a click model's network, as they lie in its dense parameters.
std::vector<model::LinearLayer> LayersOf(const model::PctrOptions& options);
// The floats of state of a row, per table.
std::vector<uint32_t> StateFloatsOf(const train::ClickEngineOptions& options);

// The planned step, as it lies on the device.
train::GpuStepLayout PlannedStep(const DeviceClickOptions& options);

// As train::Gpu has them. With cuBLAS its working memory counts, and what the library takes for
// itself does not.
Result<train::GpuNeed> NeedOfClickEngine(const DeviceFacts& facts,
                                         const DeviceClickOptions& options, bool writes_every_row,
                                         uint64_t free);
train::GpuNeed NeedOfSequenceEngine(const DeviceFacts& facts, const DeviceSequenceOptions& options);

}  // namespace tacit::cuda
