// Noise with a fault, linked in the product's place: the self-test finds every fault before the
// first step, and the criteria of tests/unit/noise find every one that a sample can show.
#include "unit/cuda/planted_noise.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "criteria.h"
#include "cuda/kernels/noise/noise_check.h"
#include "unit/cuda/device_noise.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

class PlantedDeviceNoise : public OnDevice {
 protected:
  ~PlantedDeviceNoise() override { PlantNoiseFault(NoiseFault::kNone); }

  // With the draws of a fiftieth of the criterion, which is enough for these faults.
  std::string Check(const std::string& criterion, double share) {
    for (const auto& one : noise::testing::AllCriteria()) {
      if (one.name != criterion) continue;
      return one.check(
          [&] { return std::make_unique<DeviceNoise>(*stream_, noise::MakeNoiseSource()); }, share);
    }
    return "there is no such criterion";
  }
};

constexpr NoiseFault kAll[] = {NoiseFault::kNotLaunched,     NoiseFault::kDoesNothing,
                               NoiseFault::kReplayedCounter, NoiseFault::kReplayedKey,
                               NoiseFault::kReplayedQuery,   NoiseFault::kOverlap,
                               NoiseFault::kNarrow,          NoiseFault::kLastLeftOut};

TEST_F(PlantedDeviceNoise, SelfTestFindsEveryFault) {
  const Status right = CheckNoise(*stream_);
  EXPECT_TRUE(right) << right.error().message;
  for (const NoiseFault fault : kAll) {
    PlantNoiseFault(fault);
    const Status wrong = CheckNoise(*stream_);
    ASSERT_FALSE(wrong) << "fault " << static_cast<int>(fault);
    EXPECT_EQ(wrong.error().code, ErrorCode::kCorruption);
    EXPECT_EQ(wrong.error().message,
              "GPU 0 does not compute what the CPU does (noise): it must not train");
  }
}

TEST_F(PlantedDeviceNoise, CriteriaPassWithoutAFault) {
  EXPECT_EQ(Check("Variance", 0.4), "");
  EXPECT_EQ(Check("Independence", 0.05), "");
  EXPECT_EQ(Check("NewKey", 0.05), "");
}

TEST_F(PlantedDeviceNoise, CriteriaFindNoiseThatIsLeftOut) {
  for (const NoiseFault fault : {NoiseFault::kNotLaunched, NoiseFault::kDoesNothing}) {
    PlantNoiseFault(fault);
    EXPECT_NE(Check("Variance", 0.02), "") << "fault " << static_cast<int>(fault);
  }
}

TEST_F(PlantedDeviceNoise, CriteriaFindTooLittleNoise) {
  PlantNoiseFault(NoiseFault::kNarrow);
  EXPECT_NE(Check("Variance", 1), "");
}

// All places alike: sixteen numbers, again and again.
TEST_F(PlantedDeviceNoise, CriteriaFindAReplayedCounter) {
  PlantNoiseFault(NoiseFault::kReplayedCounter);
  EXPECT_NE(Check("Distribution", 0.02), "");
}

TEST_F(PlantedDeviceNoise, CriteriaFindAReplayedKey) {
  PlantNoiseFault(NoiseFault::kReplayedKey);
  EXPECT_NE(Check("Independence", 0.05), "");
  EXPECT_NE(Check("NewKey", 0.05), "");
}

}  // namespace
}  // namespace tacit::cuda::testing
