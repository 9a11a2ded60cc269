// Faults in the products by wgmma are found on the emulated device: the product is wrong, or the
// emulator ends the process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/cuda/gemm_trial.h"
#include "unit/cuda/planted_wgmma.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

struct Case {
  WgmmaFault fault;
  const char* said;  // by the emulator, if it is it that finds the fault
};

class PlantedWgmma : public OnDevice, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    OnDevice::SetUp();
  }

  // Says whether a product of many tiles and stages is right in six orders of turns.
  bool IsRight(WgmmaFault fault, Form fa, Form fb) {
    std::mt19937_64 random(3);
    const ProductTrial trial(200, 300, 200, fa, fb, random);
    EXPECT_TRUE(PlantInWgmma(*stream_, fault));
    const auto a = ToDevice(trial.a().numbers), b = ToDevice(trial.b().numbers);
    for (int order = 0; order < 6; ++order) {
      NextOrder(order);
      const auto c = ToDevice(trial.before());
      EXPECT_TRUE(Gemm16(*stream_, fa, trial.a().On(a), fb, trial.b().On(b), 0,
                         {c.span().data, trial.m(), trial.n(), ProductTrial::Stride(trial.n())},
                         {.tile = 128, .splits = 1, .way = GemmWay::kWgmma}, {}));
      trial.Check(0, FromDevice(c));
      if (HasFailure()) return false;
    }
    return true;
  }
};

TEST_P(PlantedWgmma, IsFound) {
  const auto is_found = [](int status) {
    constexpr int kWrong = 3;
    return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == kWrong);
  };
  for (const Form fa : {Form::kAsIs, Form::kTransposed})
    EXPECT_EXIT(_exit(IsRight(GetParam().fault, fa, Form::kAsIs) ? 0 : 3), is_found,
                GetParam().said);
}

TEST_F(PlantedWgmma, NothingIsFoundWhereNothingIsPlanted) {
  for (const Form fa : {Form::kAsIs, Form::kTransposed})
    for (const Form fb : {Form::kAsIs, Form::kTransposed})
      EXPECT_TRUE(IsRight(WgmmaFault::kNone, fa, fb));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, PlantedWgmma,
    ::testing::Values(Case{WgmmaFault::kStride, ""}, Case{WgmmaFault::kLeading, ""},
                      Case{WgmmaFault::kNoSwizzle, "the swizzle of 128 bytes"},
                      Case{WgmmaFault::kRowOff, ""}, Case{WgmmaFault::kTooEarly, ""},
                      Case{WgmmaFault::kOverwrites, ""},
                      Case{WgmmaFault::kKeepsStages, "nobody can go on"},
                      Case{WgmmaFault::kReadsEarly, ""}),
    [](const auto& info) { return std::to_string(static_cast<int>(info.param.fault)); });

}  // namespace
}  // namespace tacit::cuda::testing
