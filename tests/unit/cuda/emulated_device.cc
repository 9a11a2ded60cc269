#include "cuda/device/emulated.h"
#include "cuda/device/emulator.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {

std::unique_ptr<Device> OpenTrialDevice() {
  emulated::Reset();
  NextOrder(0);
  auto device = OpenDevice(0);
  EXPECT_TRUE(device) << device.error().message;
  return device ? std::move(*device) : nullptr;
}

// Each thread of a kernel is dear under the thread sanitizer, which needs no lucky order to see a
// race.
#if defined(__SANITIZE_THREAD__)
int Orders() { return 3; }
#else
int Orders() { return 20; }
#endif
void NextOrder(int number) {
  emulator::SetSeed(static_cast<uint64_t>(number) + 1, 1 + static_cast<unsigned>(number) % 4);
}

}  // namespace tacit::cuda::testing
