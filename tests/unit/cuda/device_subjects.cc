// The device's dense kernels under the contract of all backends, on the device that is linked.
#include "contract/subjects.h"
#include "unit/cuda/device_backend.h"
#include "unit/cuda/trial_device.h"

namespace tacit::ops {

std::vector<Subject> Subjects() {
  return {{"Device", 1, [](WorkerPool&) -> std::unique_ptr<Backend> {
             auto device = cuda::testing::OpenTrialDevice();
             if (device == nullptr) return nullptr;
             auto backend = cuda::MakeDeviceBackend(std::move(device));
             EXPECT_TRUE(backend) << backend.error().message;
             return backend ? std::move(*backend) : nullptr;
           }}};
}

}  // namespace tacit::ops
