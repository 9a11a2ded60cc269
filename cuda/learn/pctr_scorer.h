#pragma once

#include <memory>

#include "base/result.h"
#include "cuda/device/device.h"
#include "model/pctr_device.h"
#include "train/engines/gpu.h"
#include "train/engines/gpu_scoring.h"

namespace tacit::cuda {

// The forward pass of a click model for those who ask, on one stream of its own. It keeps the
// parameters and some rows of a few versions in memory of its own, beside what learns: nothing that
// learns is ever answered from, and what is here has been released. All memory is taken when it is
// made. `device` must outlive it. REQUIRES a model that does not clip its inputs. Fails with
// kRefused for more layers than a device's network takes.
Result<std::unique_ptr<model::PctrDevice>> MakePctrScorer(Device& device,
                                                          const train::GpuScoreOptions& options);

// The device memory of such a scorer. A test holds it to what is taken.
train::GpuNeed NeedOfPctrScorer(const DeviceFacts& facts, const train::GpuScoreOptions& options);

}  // namespace tacit::cuda
