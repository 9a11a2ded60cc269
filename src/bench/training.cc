#include "base/clock.h"
#include "bench/suite.h"
#include "bench/training_rig.h"

namespace tacit::bench {
namespace {

constexpr size_t kTrainingSteps = 16;
constexpr double kSecondsPerTurn = 4;
constexpr int kTurns = 3;

// Trains for a while, on both cores. Commits every second, as the demo does, or once at the end,
// which is not timed. Returns examples a second.
Result<double> Turn(TrainingRig& rig, bool commits) {
  const SystemClock clock;
  const auto start = clock.Now();
  auto last_commit = start;
  uint64_t examples = 0;
  while (Seconds(clock.Now() - start) < kSecondsPerTurn) {
    TACIT_RETURN_IF_ERROR(rig.Step(&examples));
    if (commits && clock.Now() - last_commit >= std::chrono::seconds(1)) {
      last_commit = clock.Now();
      TACIT_RETURN_IF_ERROR(rig.Commit());
    }
  }
  if (commits) TACIT_RETURN_IF_ERROR(rig.store().Flush());
  const double rate = static_cast<double>(examples) / Seconds(clock.Now() - start);
  TACIT_RETURN_IF_ERROR(rig.Commit());
  TACIT_RETURN_IF_ERROR(rig.store().Flush());
  return rate;
}

}  // namespace

Result<std::vector<BenchRow>> BenchTraining() {
  TACIT_ASSIGN(BenchSetup setup, MakeBenchSetup({.steps = kTrainingSteps}));
  TrainingRig rig(std::move(setup), {.name = "training"});
  TACIT_RETURN_IF_ERROR(rig.Open());
  TACIT_RETURN_IF_ERROR(Turn(rig, false));  // warms up
  double with = 0, without = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    TACIT_ASSIGN(const double bare, Turn(rig, false));
    TACIT_ASSIGN(const double committing, Turn(rig, true));
    without += bare / kTurns;
    with += committing / kTurns;
  }
  return std::vector<BenchRow>{
      {"training-bare-f32", without, "examples/s on 2 cores", std::nullopt},
      {"training-with-commits-f32", with, "examples/s on 2 cores", without},
      {"training-rows-written", rig.RowsPerStep(), "rows a step", std::nullopt}};
}

}  // namespace tacit::bench
