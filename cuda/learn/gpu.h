#pragma once

#include <memory>

#include "base/result.h"
#include "train/engines/gpu.h"

// The one header of cuda/ that programs include. Where a program is linked decides whether there is
// a device behind it: the real one, the emulated one of tests, or none (cuda/absent.cc).
namespace tacit::cuda {

// Opens a GPU. Fails as OpenDevice does, and with kInvalidArgument in a program
// that was built without CUDA.
Result<std::unique_ptr<train::Gpu>> OpenGpu(const train::GpuOptions& options);

}  // namespace tacit::cuda
