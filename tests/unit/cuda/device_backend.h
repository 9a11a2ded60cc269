#pragma once

#include <memory>

#include "base/result.h"
#include "cuda/device/device.h"
#include "ops/backend.h"

namespace tacit::cuda {

// The device's dense kernels as an ops::Backend: every call copies its operands to the device and
// the result back. It holds the kernels against the contract that all backends keep; no learner
// runs on it, because those copies would take a hundred times as long as the work. A device that
// fails ends the process. Units one at a time (MakeUnitOps) are computed by the reference: a kernel
// for one unit would be all launch.
//
// It owns its device. Not thread-safe.
Result<std::unique_ptr<ops::Backend>> MakeDeviceBackend(std::unique_ptr<Device> device);

}  // namespace tacit::cuda
