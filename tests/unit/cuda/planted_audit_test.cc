// Faults in the kernels that draw noise, and in what bounds a unit, are proved to cost more than is
// charged.
#include "audit/engine_setting.h"
#include "unit/cuda/engine_audit.h"
#include "unit/cuda/planted_step.h"

namespace tacit::cuda::testing {
namespace {

using audit::EngineCase;
using Heavy = EngineCase::Heavy;
using Rows = mechanism::Recipe::Rows;

class PlantedAudit : public DeviceEngineAudit {
 protected:
  ~PlantedAudit() override { Plant(StepFault::kNone); }

  void ExpectFound(StepFault fault, const EngineCase& audited) {
    Plant(fault);
    const audit::Finding finding = Audit(audited, kFaultRuns);
    EXPECT_TRUE(finding.Exceeds() || !kAuditProves) << Describe(audited, finding);
  }

  void Plant(StepFault fault) {
    // Places of the first table's rows: those of the next one have the same noise, number by
    // number.
    const audit::EngineSetting setting({}, kFaultRuns);
    const uint64_t places = (setting.model.space.max_dim() + 15) / 16;
    PlantInFinish(fault, setting.model.space.tables()[0].rows * places);
    PlantInSelect(fault);
    PlantInGemm(fault);
  }
};

TEST_F(PlantedAudit, NothingIsFoundWhereNothingIsPlanted) {
  const EngineCase audited{.name = "nothing planted", .rows = Rows::kThreshold};
  const audit::Finding finding = Audit(audited, kFaultRuns);
  EXPECT_FALSE(finding.Exceeds()) << Describe(audited, finding);
}

TEST_F(PlantedAudit, NoiseLeftOutOfRowsThatNobodyTouchedIsFound) {
  ExpectFound(StepFault::kNoNoiseWithoutSum, {.name = "silent rows, dp-sgd"});
  ExpectFound(StepFault::kNoNoiseWithoutSum,
              {.name = "silent rows, adafest", .rows = Rows::kThreshold});
  ExpectFound(StepFault::kNoNoiseWithoutSum,
              {.name = "silent rows, fest", .rows = Rows::kInside, .has_vocabulary = true});
}

TEST_F(PlantedAudit, NoiseLeftOutOfTheDensePartIsFound) {
  ExpectFound(StepFault::kNoDenseNoise,
              {.name = "no noise on the dense part", .heavy = Heavy::kNumbers});
}

TEST_F(PlantedAudit, NoiseThatIsHalfIsFound) {
  ExpectFound(StepFault::kHalfNoise, {.name = "half of the noise"});
  ExpectFound(StepFault::kHalfNoise,
              {.name = "half of the noise, adafest", .rows = Rows::kThreshold});
}

TEST_F(PlantedAudit, NoiseThatIsTheSameInEveryStepIsFound) {
  ExpectFound(StepFault::kSameNoise, {.name = "the same noise in every step"});
}

TEST_F(PlantedAudit, NoiseThatTwoRowsShareIsFound) {
  ExpectFound(StepFault::kSharedNoise, {.name = "noise of two tables", .heavy = Heavy::kRows});
}

// A norm that lacks a part of its squares lets a unit through that is larger than the clip.
TEST_F(PlantedAudit, SquaresThatAProductLeavesOutAreFound) {
  ExpectFound(
      StepFault::kSquaresOfALane,
      {.name = "squares of a lane", .precision = ops::Precision::kBf16, .heavy = Heavy::kNumbers});
}

TEST_F(PlantedAudit, SelectionWithoutNoiseIsFound) {
  ExpectFound(StepFault::kNoSelectionNoise,
              {.name = "selection without noise", .rows = Rows::kThreshold, .split = 0.25});
}

}  // namespace
}  // namespace tacit::cuda::testing
