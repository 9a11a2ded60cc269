// Faults of the cache of rows are found by what its tests compare.
#include "unit/cuda/planted_rows.h"

#include <gtest/gtest.h>

#include "cuda/device/emulated.h"
#include "cuda/device/emulator.h"
#include "unit/cuda/cache_rig.h"
#include "unit/cuda/device_trial.h"
#include "unit/cuda/planted_step.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

class PlantedRows : public OnDevice {
 protected:
  ~PlantedRows() override {
    PlantInIndex(CacheFault::kNone);
    PlantInMover(CacheFault::kNone);
    PlantInFinish(StepFault::kNone);
  }

  // Counts what the cache's test finds in a few runs with one bucket a family.
  CacheFindings Find(CacheFault fault, uint64_t bytes = 1) {
    CacheFindings all;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      emulator::SetSeed(seed);
      CacheRig rig(*device_, {.bytes = bytes}, seed);
      const auto zeros = ToDevice(std::vector<uint8_t>(1 << 16, 0));
      PlantInIndex(fault, fault == CacheFault::kMarksTouched ? rig.changed() : zeros.span());
      PlantInMover(fault);
      rig.Run(12);
      PlantInIndex(CacheFault::kNone);
      PlantInMover(CacheFault::kNone);
      const CacheFindings& found = rig.findings();
      all.checked += found.checked;
      all.wrong_floats += found.wrong_floats;
      all.wrong_names += found.wrong_names;
      all.marked_not_written += found.marked_not_written;
      all.lost += found.lost;
      all.failed += found.failed;
    }
    RecordProperty("wrong_floats", static_cast<int>(all.wrong_floats));
    RecordProperty("wrong_names", static_cast<int>(all.wrong_names));
    RecordProperty("marked_not_written", static_cast<int>(all.marked_not_written));
    RecordProperty("lost", static_cast<int>(all.lost));
    return all;
  }
};

TEST_F(PlantedRows, NothingIsFoundWhereNothingIsPlanted) {
  const CacheFindings found = Find(CacheFault::kNone);
  EXPECT_GT(found.checked, 10'000u);
  EXPECT_EQ(found.wrong(), 0u);
}
TEST_F(PlantedRows, AnEvictionThatLosesAChangedRowIsFound) {
  const CacheFindings found = Find(CacheFault::kEvictsChanged);
  EXPECT_GT(found.wrong_floats, 0u);
  EXPECT_GT(found.lost, 0u);
}
TEST_F(PlantedRows, AnEvictionOfARowInUseIsFound) {
  const CacheFindings found = Find(CacheFault::kEvictsInUse);
  EXPECT_GT(found.wrong_floats + found.wrong_names, 0u);
}
TEST_F(PlantedRows, ARowThatIsSentHomeBecauseItWasTouchedIsFound) {
  EXPECT_GT(Find(CacheFault::kMarksTouched, uint64_t{1} << 30).marked_not_written, 0u);
}
TEST_F(PlantedRows, AgesThatAreNotKeptAreFound) {
  const CacheFindings found = Find(CacheFault::kKeepsNoAges);
  EXPECT_GT(found.wrong_floats + found.wrong_names, 0u);
}

#if !defined(__SANITIZE_THREAD__)  // which ends the process at the race
// Tells whether work on the engine's stream sees the floats of rows that were fetched just now. The
// cache is empty, so the names are known: the first places, in the rows' order.
bool SeesWhatWasFetched(Stream& stream, CacheFault fault) {
  store::RowLayout layout;
  layout.space.AddTable("one", 100, 4);
  layout.state_floats = {0};
  PlainRows plain(layout);
  auto cache = CachedRows::Make(stream, layout.space, {0}, {.bytes = 1}, plain);
  EXPECT_TRUE(cache);
  const std::vector<uint64_t> rows = {5, 17, 60};
  const std::vector<uint32_t> row = {5, 17, 60}, name = {0, 1, 2};
  std::vector<float> floats(12), want;
  for (const uint64_t r : rows) want.insert(want.end(), plain.rows[r].begin(), plain.rows[r].end());
  auto row_device = Buffer<uint32_t>::Make(stream.device(), 3);
  auto name_device = Buffer<uint32_t>::Make(stream.device(), 3);
  auto floats_device = Buffer<float>::Make(stream.device(), 12);
  PlantInMover(fault);
  EXPECT_TRUE((*cache)->Begin(rows, DeviceRows::Purpose::kStep));
  PlantInMover(CacheFault::kNone);
  EXPECT_TRUE(stream.Upload<uint32_t>(row, row_device->span()));
  EXPECT_TRUE(stream.Upload<uint32_t>(name, name_device->span()));
  EXPECT_TRUE(PackRows(stream, (*cache)->view().places,
                       {.row = row_device->span(),
                        .name = name_device->span(),
                        .stride = 4,
                        .floats = floats_device->span()}));
  EXPECT_TRUE(stream.Download(floats_device->span(), std::span<float>(floats)));
  EXPECT_TRUE(stream.Synchronize());
  return floats == want;
}

TEST_F(PlantedRows, AMissingWaitBetweenTheStreamsIsFound) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    emulator::SetSeed(seed);
    EXPECT_TRUE(SeesWhatWasFetched(*stream_, CacheFault::kNone)) << "seed " << seed;
    wrong += !SeesWhatWasFetched(*stream_, CacheFault::kMissingWait);
  }
  EXPECT_GT(wrong, 0);
  RecordProperty("wrong_of_20_seeds", wrong);
  emulated::SetTurns(emulated::Turns::kLate);
  EXPECT_TRUE(SeesWhatWasFetched(*stream_, CacheFault::kNone));
  EXPECT_FALSE(SeesWhatWasFetched(*stream_, CacheFault::kMissingWait));
}
#endif

// Rows that a step selected and to which its last kernel added no noise must not go home.
std::pair<std::set<uint64_t>, std::set<uint64_t>> HomeAndMoved(Device& device, StepFault fault) {
  DeviceTrial trial(device, {.threshold = 1, .large = true}, 64,
                    {.kind = train::GpuRowOptions::Kind::kCache, .cache_bytes = 1});
  std::mt19937_64 random(3);
  const auto before = trial.rows().All();
  PlantInFinish(fault);
  trial.Step(RandomStep(trial.space(), 2, 20, 2, random));
  PlantInFinish(StepFault::kNone);
  const auto after = trial.rows().All();
  std::set<uint64_t> moved;
  for (uint64_t row = 0; row < before.size(); ++row)
    if (before[row] != after[row]) moved.insert(row);
  return {trial.TakeMarked(), moved};
}

TEST_F(PlantedRows, ARowWithoutNoiseThatIsSentHomeIsFound) {
  const auto [home, moved] = HomeAndMoved(*device_, StepFault::kNone);
  EXPECT_GT(home.size(), 10u);
  EXPECT_EQ(home, moved);
  const auto [wrong_home, wrong_moved] = HomeAndMoved(*device_, StepFault::kRowsMarkedOnly);
  EXPECT_GT(wrong_home.size(), 10u);
  EXPECT_NE(wrong_home, wrong_moved);
}
TEST_F(PlantedRows, NothingIsSentHomeByAKernelThatDoesNothing) {
  EXPECT_EQ(HomeAndMoved(*device_, StepFault::kRowsNotStepped).first, std::set<uint64_t>());
}

}  // namespace
}  // namespace tacit::cuda::testing
