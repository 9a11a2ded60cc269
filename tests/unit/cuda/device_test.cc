// Opening a device, and what each thing that can be missing is called.
#include "cuda/device/device.h"

#include <gtest/gtest.h>

#include <thread>

#include "cuda/device/buffer.h"
#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"

namespace tacit::cuda {
namespace {

Error Refused(const emulated::Machine& machine, int ordinal = 0) {
  emulated::Reset(machine);
  const auto device = OpenDevice(ordinal);
  EXPECT_FALSE(device);
  return device ? Error{} : device.error();
}

TEST(OpenDevice, TellsWhatItOpened) {
  emulated::Reset({.driver_version = 13010, .devices = 2, .memory_bytes = 1 << 20});
  const auto device = OpenDevice(1);
  ASSERT_TRUE(device) << device.error().message;
  const DeviceFacts& facts = (*device)->facts();
  EXPECT_EQ(facts.ordinal, 1);
  EXPECT_EQ(facts.name, "emulated on the CPU");
  EXPECT_EQ(facts.uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(facts.major, 9);
  EXPECT_EQ(facts.driver_version, 13010);
  EXPECT_EQ(facts.memory_free_bytes, size_t{1} << 20);
  EXPECT_TRUE((*device)->Health());
}

TEST(OpenDevice, WithoutADriver) {
  const Error error = Refused({.driver_version = 0});
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.message, "no NVIDIA driver is installed; CUDA 13.0 needs 580 or newer");
}

TEST(OpenDevice, WithADriverThatIsTooOld) {
  const Error error = Refused({.driver_version = 12080});
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.message,
            "the NVIDIA driver knows CUDA 12.8 and is too old for CUDA 13.0, which needs driver "
            "580 or newer");
}

TEST(OpenDevice, WithADriverAndNoDevice) {
  const Error error = Refused({.devices = 0});
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_NE(error.message.find("cudaErrorNoDevice"), std::string::npos) << error.message;
}

TEST(OpenDevice, ThatIsNotThere) {
  EXPECT_EQ(Refused({.devices = 1}, 1).message,
            "there is no GPU 1: this machine has one, counted from 0");
  EXPECT_EQ(Refused({.devices = 4}, -1).message,
            "there is no GPU -1: this machine has 4, counted from 0");
  EXPECT_EQ(Refused({.devices = 1}, 1).code, ErrorCode::kInvalidArgument);
}

TEST(OpenDevice, ThatIsTooOld) {
  const Error error = Refused({.major = 7, .minor = 5});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message,
            "GPU 0, emulated on the CPU, has compute capability 7.5; this build has code for 9.0 "
            "and newer");
}

TEST(OpenDevice, ThatIsBusy) {
  const Error error = Refused({.use_device_code = code::kDevicesUnavailable});
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_NE(error.message.find("opening GPU 0: cudaErrorDevicesUnavailable"), std::string::npos);
  EXPECT_NE(error.message.find("another process holds it"), std::string::npos) << error.message;
}

// CUDA's device is a thread's own, and 0 in a thread that was told nothing.
TEST(OpenDevice, BelongsToTheThreadThatBindsIt) {
  emulated::Reset({.devices = 2});
  auto device = OpenDevice(1);
  ASSERT_TRUE(device) << device.error().message;
  std::thread([&] {
    EXPECT_FALSE(Buffer<float>::Make(**device, 8)) << "device 0 is another one";
    ASSERT_TRUE((*device)->BindThread());
    EXPECT_TRUE(Buffer<float>::Make(**device, 8));
  }).join();
  EXPECT_TRUE(Buffer<float>::Make(**device, 8));
  device->reset();
  emulated::Reset();
}

TEST(Errors, ThatLoseTheDevice) {
  for (const int code : {code::kEccUncorrectable, code::kIllegalAddress, code::kLaunchFailure,
                         code::kUnknown, 702, 716})
    EXPECT_TRUE(LosesDevice(code)) << code;
  for (const int code : {0, code::kMemoryAllocation, code::kInvalidConfiguration,
                         code::kLaunchOutOfResources, code::kStreamCaptureInvalidated})
    EXPECT_FALSE(LosesDevice(code)) << code;
}

}  // namespace
}  // namespace tacit::cuda
