// Faults in a step's kernels are found by what its tests compare.
#include "unit/cuda/planted_step.h"

#include <gtest/gtest.h>

#include "cuda/device/emulator.h"
#include "cuda/kernels/gemm/gemm.h"
#include "unit/cuda/device_trial.h"
#include "unit/cuda/gemm_ends.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

class PlantedStep : public OnDevice {
 protected:
  ~PlantedStep() override {
    PlantInFinish(StepFault::kNone);
    PlantInGemm(StepFault::kNone);
  }

  // Tells whether a step without units leaves rows and dense parameters with the CPU's bits.
  std::pair<bool, bool> IsTheCpus(StepFault fault, uint64_t period = 0) {
    const TrialOptions options{.threshold = 1};
    HostTrial host(options);
    DeviceTrial trial(*device_, options, 64);
    std::mt19937_64 random(3);
    const auto nobody = RandomStep(trial.space(), 2, 0, 1, random);
    PlantInFinish(fault, period);
    host.Step(nobody);
    trial.Step(nobody);
    return {trial.rows().All() == host.rows().All(),
            trial.engine().dense().parameters == host.dense().parameters};
  }
};

TEST_F(PlantedStep, NothingIsFoundWhereNothingIsPlanted) {
  EXPECT_EQ(IsTheCpus(StepFault::kNone), std::pair(true, true));
}
TEST_F(PlantedStep, NoiseThatIsLeftOutIsFound) {
  EXPECT_EQ(IsTheCpus(StepFault::kNoNoise), std::pair(false, false));
}
// As it would be if each part of the dense parameters drew from the first place on.
TEST_F(PlantedStep, NoiseOfTheFirstPlacesInLaterOnesIsFound) {
  for (const uint64_t period : {1, 4, 16})
    EXPECT_EQ(IsTheCpus(StepFault::kSharedDenseNoise, period), std::pair(true, false));
}
TEST_F(PlantedStep, KernelThatDoesNothingIsFound) {
  EXPECT_EQ(IsTheCpus(StepFault::kRowsNotStepped), std::pair(false, true));
}

TEST_F(PlantedStep, WrongEndsOfAProductAreFound) {
  std::mt19937_64 random(4);
  const auto is_found = [&](StepFault fault) {
    PlantInGemm(fault);
    EndsTrial trial(*stream_, {.m = 20, .n = 30, .k = 40}, random);
    const GemmPlan plan{.tile = 64, .splits = 1};
    return trial.Fused(plan) != trial.Separate(plan);
  };
  EXPECT_FALSE(is_found(StepFault::kNone));
  for (const StepFault fault : {StepFault::kNoMask, StepFault::kBiasTwice, StepFault::kNoOnes,
                                StepFault::kSquaresOfALane, StepFault::kEndOfAPart})
    EXPECT_TRUE(is_found(fault)) << static_cast<int>(fault);
}

#if !defined(__SANITIZE_THREAD__)  // which ends the process at the race
TEST_F(PlantedStep, MissingBarrierOfAProductIsFound) {
  constexpr uint32_t kSide = 64, kInner = 256;
  const auto ones = ToDevice(std::vector<uint16_t>(kSide * kInner, 0x3f80));
  const auto wrong_of = [&](StepFault fault) {
    PlantInGemm(fault);
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      emulator::SetSeed(seed);
      const auto c = Make<float>(kSide * kSide);
      EXPECT_TRUE(Gemm16(*stream_, Form::kAsIs, {ones.span().data, kSide, kInner, kInner},
                         Form::kAsIs, {ones.span().data, kInner, kSide, kSide}, 0,
                         {c.span().data, kSide, kSide, kSide}, {.tile = 64, .splits = 1}, {}));
      wrong += FromDevice(c) != std::vector<float>(kSide * kSide, kInner);
    }
    return wrong;
  };
  EXPECT_EQ(wrong_of(StepFault::kNone), 0);
  EXPECT_GT(wrong_of(StepFault::kMissingBarrier), 0);
}
#endif

}  // namespace
}  // namespace tacit::cuda::testing
