// A wait between a step's streams that is missing is found by what its tests compare: streams run
// late and in any order that the waits allow.
#include "unit/cuda/planted_streams.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cuda/device/emulated.h"
#include "cuda/device/emulator.h"
#include "unit/cuda/device_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

#if !defined(__SANITIZE_THREAD__)  // which ends the process at the race
class PlantedStreams : public ::testing::Test {
 protected:
  // Steps of the same sizes. The first ones are taken right, so that all memory holds what was good
  // once; a missing wait then lets that be read, and nothing outside of the tables.
  static constexpr size_t kRight = 3, kSteps = 7;
  static std::vector<stream::StepBatch> Steps(const RowSpace& space) {
    std::mt19937_64 random(4);
    std::vector<stream::StepBatch> steps(kSteps, RandomStep(space, 2, 9, 1, random));
    for (stream::StepBatch& step : steps) {
      for (uint64_t& row : step.examples.row) {
        const RowSpace::Table& table = space.tables()[space.TableOf(row)];
        row = table.first + random() % table.rows;
      }
      for (float& number : step.examples.dense) number = static_cast<float>(random() % 5);
    }
    return steps;
  }

  // The model after the steps; nothing if one failed.
  static std::vector<std::vector<float>> Learn(std::optional<StepPoint> missing, uint64_t seed,
                                               emulated::Turns turns) {
    const auto device = OpenTrialDevice();
    emulator::SetSeed(seed);
    emulated::SetTurns(turns);
    PlantMissingWait({});
    DeviceTrial trial(*device, {.optimizer = "adam", .threshold = 1}, 64,
                      {.kind = train::GpuRowOptions::Kind::kWhole});
    const std::vector<stream::StepBatch> steps = Steps(trial.space());
    bool failed = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (i == kRight) PlantMissingWait(missing);
      train::StepReport report;
      if (i + 1 < steps.size()) trial.engine().Announce(steps[i + 1]);
      failed = failed || !trial.engine().Begin(steps[i]) || !trial.engine().Release(&report);
    }
    if (failed) return {};
    trial.Settle();
    auto all = trial.rows().All();
    all.push_back(trial.engine().dense().parameters);
    return all;
  }
  // The runs whose model is not the one that all waits give.
  static int WrongRuns(std::optional<StepPoint> missing) {
    const auto right = Learn({}, 1, emulated::Turns::kShuffled);
    EXPECT_FALSE(right.empty());
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 6; ++seed)
      for (const auto turns : {emulated::Turns::kShuffled, emulated::Turns::kLate})
        wrong += Learn(missing, seed, turns) != right;
    return wrong;
  }
};

// Each in a process of its own: kernels that read a mixture of two steps may well end it.
bool IsFound(int status) { return status != 0; }
bool IsClean(int status) { return status == 0; }
#define TACIT_FIND(missing, how) EXPECT_EXIT(std::_Exit(WrongRuns(missing) > 0 ? 1 : 0), how, "")

TEST_F(PlantedStreams, NothingIsFoundWhereNothingIsMissing) { TACIT_FIND({}, IsClean); }
TEST_F(PlantedStreams, MissingWaitForAStepThatWasBroughtAheadIsFound) {
  TACIT_FIND(StepPoint::kArrived, IsFound);
}
TEST_F(PlantedStreams, MissingWaitForTheStepsBeginIsFound) {
  TACIT_FIND(StepPoint::kBegun, IsFound);
}
TEST_F(PlantedStreams, MissingWaitForTheSelectionIsFound) {
  TACIT_FIND(StepPoint::kSelected, IsFound);
}
TEST_F(PlantedStreams, MissingWaitForTheScalesIsFound) { TACIT_FIND(StepPoint::kScaled, IsFound); }
TEST_F(PlantedStreams, MissingWaitForALayersSumsIsFound) {
  TACIT_FIND(StepPoint::kSummed, IsFound);
}
TEST_F(PlantedStreams, MissingWaitForTheEndIsFound) { TACIT_FIND(StepPoint::kDone, IsFound); }
#endif

}  // namespace
}  // namespace tacit::cuda::testing
