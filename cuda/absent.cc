// Linked when Tacit is built without CUDA: a caller that asks for a device learns so.
#include "cuda/device/device.h"

namespace tacit::cuda {

Device::~Device() = default;

Result<std::unique_ptr<Device>> OpenDevice(int) {
  return Fail(ErrorCode::kUnavailable,
              "this Tacit was built without CUDA; build it with the preset cuda to use a GPU");
}

}  // namespace tacit::cuda
