#include <cstdlib>
#include <string>

#include "unit/cuda/blas_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

bool Required() {
  const char* required = std::getenv("TACIT_REQUIRE");
  return required != nullptr &&
         ("," + std::string(required) + ",").find(",gpu,") != std::string::npos;
}

void Skip(const std::string& why) { GTEST_SKIP() << why; }

}  // namespace

std::unique_ptr<Device> OpenTrialDevice() {
  auto device = OpenDevice(0);
  if (device) return std::move(*device);
  if (Required()) {
    ADD_FAILURE() << "TACIT_REQUIRE asks for a GPU: " << device.error().message;
  } else {
    Skip(device.error().message);
  }
  return nullptr;
}

int Orders() { return 1; }
void NextOrder(int) {}

bool LibraryMustBeThere() { return false; }

}  // namespace tacit::cuda::testing
