// The build for devices, with or without one: cudart is in the program, and says in our words what
// is missing.
#include "cuda/device/runtime.h"

#include <gtest/gtest.h>

#include <string>

#include "cuda/device/device.h"
#include "cuda/device/errors.h"
#include "cuda/kernels/noise/noise.h"

namespace tacit::cuda {
namespace {

TEST(Runtime, OpensTheDeviceOrSaysWhatIsMissing) {
  int version = -1;
  ASSERT_EQ(runtime::DriverVersion(&version), runtime::kSuccess);
  const auto device = OpenDevice(0);
  if (device) {
    EXPECT_GE(version, kCudaVersionMin);
    EXPECT_GE((*device)->facts().major, kMajorMin);
    EXPECT_GT((*device)->facts().multiprocessors, 0);
    EXPECT_EQ((*device)->facts().uuid.size(), 40u);
    return;
  }
  EXPECT_EQ(device.error().code, ErrorCode::kUnavailable);
  if (version == 0) {
    EXPECT_EQ(device.error().message,
              "no NVIDIA driver is installed; CUDA 13.0 needs 580 or newer");
  }
}

TEST(Runtime, NamesErrorsAsCudaDoes) {
  EXPECT_STREQ(runtime::ErrorName(code::kMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_EQ(DeviceError(code::kIllegalAddress, "GPU 0: copying 4 bytes").message,
            std::string("GPU 0: copying 4 bytes: cudaErrorIllegalAddress, an illegal memory access "
                        "was encountered; the device is lost to this process, which must be "
                        "restarted"));
}

// Kernels are linked: their launch is reached, and refused for want of a stream alone.
TEST(Runtime, HasTheNoiseKernels) {
  Status (*const add)(Stream&, DeviceSpan<const NoiseKey>, NoiseQuery, double,
                      DeviceSpan<int64_t>) = AddGridNoise;
  EXPECT_NE(add, nullptr);
}

TEST(Runtime, RefusesEmulatedKernels) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_DEATH((void)runtime::LaunchEmulated(
                   "Any", {}, [] {}, nullptr),
               "an emulated kernel was launched on a device");
}

}  // namespace
}  // namespace tacit::cuda
