// The criteria of tests/unit/noise, with the device's noise as their subject.
#include <gtest/gtest.h>

#include "criteria.h"
#include "unit/cuda/device_noise.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using noise::testing::AllCriteria;
using noise::testing::Criterion;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kShare = 0.002;  // the shape of the test, and what the sanitizer sees
#else
constexpr double kShare = 0.1;
#endif

class DeviceCriteria : public OnDevice, public ::testing::WithParamInterface<Criterion> {};

TEST_P(DeviceCriteria, Passes) {
  if (device_ == nullptr) return;
  const double share = Orders() == 1 ? 1 : kShare;  // a real device takes all of them
  EXPECT_EQ(
      GetParam().check(
          [&] { return std::make_unique<DeviceNoise>(*stream_, noise::MakeNoiseSource()); }, share),
      "");
}

INSTANTIATE_TEST_SUITE_P(Noise, DeviceCriteria, ::testing::ValuesIn(AllCriteria()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tacit::cuda::testing
