// Linked into the daemon that learns on the emulated device: TACIT_TEST_GPU says what its machine
// is.
//   driver=V      the driver's version; 0: none is installed
//   memory=BYTES  of the device
//   open=CODE     opening the device fails with this number of CUDA's
//   fail=N:CODE   the call of CUDA that is Nth after the opening of the process fails
#include <cstdio>
#include <cstdlib>

#include "cuda/device/emulated.h"

namespace tacit::cuda {
namespace {

const bool made = [] {
  const char* const text = std::getenv("TACIT_TEST_GPU");
  if (text == nullptr) return false;
  emulated::Machine machine;
  unsigned long calls = 0;
  int code = 0;
  const bool fails = std::sscanf(text, "fail=%lu:%d", &calls, &code) == 2;
  if (!fails && std::sscanf(text, "driver=%d", &machine.driver_version) != 1 &&
      std::sscanf(text, "memory=%lu", &machine.memory_bytes) != 1 &&
      std::sscanf(text, "open=%d", &machine.use_device_code) != 1)
    std::abort();
  emulated::Reset(machine);
  if (fails) emulated::FailCall(calls, code);
  return true;
}();

}  // namespace
}  // namespace tacit::cuda
