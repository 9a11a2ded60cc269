// The cache of rows against the truth under random operations, at any capacity.
#include "cuda/rows/cached_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/rows/row_arrival.h"
#include "unit/cuda/cache_rig.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

constexpr uint64_t kHuge = uint64_t{1} << 30;

// Under a sanitizer each thread of a kernel is dear.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 1;
constexpr int kSteps = 8;
#else
constexpr uint64_t kSeeds = 5;
constexpr int kSteps = 25;
#endif

class CachedRowsTest : public OnDevice {
 protected:
  CachedRows::Stats Run(const CachedRowsOptions& options, uint64_t seed, int steps = kSteps) {
    SCOPED_TRACE(fmt::format("{} bytes, seed {}", options.bytes, seed));
    NextOrder(static_cast<int>(seed));
    CacheRig rig(*device_, options, seed);
    rig.Run(steps);
    const CacheFindings& found = rig.findings();
    EXPECT_GT(found.checked, 1000u);
    EXPECT_EQ(found.wrong_floats, 0u);
    EXPECT_EQ(found.wrong_names, 0u);
    EXPECT_EQ(found.marked_not_written, 0u);
    EXPECT_EQ(found.lost, 0u);
    return rig.stats();
  }
};

TEST_F(CachedRowsTest, OneBucketAFamilyIsEnough) {
  if (device_ == nullptr) return;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto stats = Run({.bytes = 1}, seed);
    EXPECT_EQ(stats.places, 2u * kBucketPlaces);
    EXPECT_GT(stats.guests, 0u);
    EXPECT_GT(stats.late, 0u);
    EXPECT_GT(stats.early_returns, 0u);
    EXPECT_GT(stats.steps_fetched_ahead, 0u);
  }
}

TEST_F(CachedRowsTest, AFewBuckets) {
  if (device_ == nullptr) return;
  for (uint64_t seed = 11; seed < 11 + kSeeds; ++seed) {
    const auto stats = Run({.bytes = 24'000}, seed);
    EXPECT_GT(stats.places, 2u * kBucketPlaces);
    EXPECT_LT(stats.places, 1200u);
    EXPECT_GT(stats.home, 0u);
  }
}

// A cache of more places than are listed at a time, the last of them few.
TEST_F(CachedRowsTest, RowsGoHomeInParts) {
  if (device_ == nullptr) return;
  for (uint64_t seed = 41; seed < 41 + kSeeds; ++seed) {
    const auto stats = Run({.bytes = 24'000, .places_at_once = 100}, seed);
    EXPECT_GT(stats.places, 2u * 100);
    EXPECT_GT(stats.home, 0u);
  }
}

TEST_F(CachedRowsTest, NothingMissesTwiceWhereAllRowsHaveAPlace) {
  if (device_ == nullptr) return;
  for (uint64_t seed = 21; seed < 21 + kSeeds; ++seed) {
    const auto stats = Run({.bytes = kHuge}, seed);
    EXPECT_EQ(stats.places, 10u * kBucketPlaces);
    EXPECT_LE(stats.fetched, 1200u) << "each row once at most";
    EXPECT_EQ(stats.guests, 0u);
  }
}

TEST_F(CachedRowsTest, TicksThatRunOutBeginAgain) {
  if (device_ == nullptr) return;
  for (uint64_t seed = 31; seed < 31 + kSeeds; ++seed) {
    const auto stats = Run({.bytes = 1, .first_tick = kNone - 30}, seed);
    EXPECT_GE(stats.ticks_started, 1u);
  }
}

TEST_F(CachedRowsTest, WhatWasFetchedAheadIsNotFetchedAgain) {
  if (device_ == nullptr) return;
  auto layout = store::RowLayout();
  layout.space.AddTable("one", 5000, 4);
  layout.state_floats = {0};
  PlainRows plain(layout);
  WatchedRows watched(plain, layout);
  auto cache =
      CachedRows::Make(*stream_, layout.space, layout.state_floats, {.bytes = 30'000}, watched);
  ASSERT_TRUE(cache);
  const std::vector<uint64_t> first = {1, 2, 3}, second = {3, 700, 4000};
  (*cache)->Announce(second);
  ASSERT_TRUE((*cache)->Begin(first, DeviceRows::Purpose::kStep));
  EXPECT_EQ(watched.gathers(), 1u);
  ASSERT_TRUE((*cache)->FetchAnnounced());
  EXPECT_EQ(watched.gathers(), 2u);
  EXPECT_EQ((*cache)->stats().fetched, 5u);
  ASSERT_TRUE(stream_->Synchronize());
  ASSERT_TRUE((*cache)->End({}));
  ASSERT_TRUE((*cache)->Begin(second, DeviceRows::Purpose::kStep));
  EXPECT_EQ(watched.gathers(), 2u);
  EXPECT_EQ((*cache)->stats().entries, 6u);
  ASSERT_TRUE(stream_->Synchronize());
  ASSERT_TRUE((*cache)->Settle());
  EXPECT_EQ(watched.gathers(), 2u) << "nothing was written";
}

// Two rows are a piece here, and there are three: the staging is written anew behind the first
// piece's copy.
TEST_F(CachedRowsTest, RowsOfSeveralPiecesComeAndGoWhole) {
  if (device_ == nullptr) return;
  constexpr uint32_t kFloats = uint32_t{1} << 19;
  store::RowLayout layout;
  layout.space.AddTable("one", 3, kFloats);
  layout.state_floats = {0};
  ASSERT_EQ(store::ArrivalPieceRows(3, kFloats), 2u);
  PlainRows plain(layout);
  const auto want = plain.rows;
  const auto memory = ToDevice(std::vector<float>(3 * kFloats, 0.0f));
  const auto tables = ToDevice(std::vector<DeviceTable>{{.embedding = memory.span().data,
                                                         .state = nullptr,
                                                         .first = 0,
                                                         .rows = 3,
                                                         .dim = kFloats,
                                                         .state_floats = 0,
                                                         .first_name = 0}});
  const std::vector<RowName> rows = {{0, 0}, {1, 1}, {2, 2}};
  RowMover mover({{0, kFloats}}, kFloats);
  ASSERT_TRUE(mover.TakeWayHome(*device_, 3));
  ASSERT_TRUE(mover.Fetch(*stream_, {.tables = tables.span()}, rows, plain));
  const auto there = FromDevice(memory);
  for (auto& row : plain.rows) std::ranges::fill(row, 0.0f);
  ASSERT_TRUE(mover.SendHome(*stream_, {.tables = tables.span()}, rows, plain));
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_TRUE(std::equal(want[row].begin(), want[row].end(), there.begin() + row * kFloats))
        << "there, row " << row;
    EXPECT_EQ(plain.rows[row], want[row]) << "home, row " << row;
  }
}

TEST_F(CachedRowsTest, FailuresOfTheHostsRowsAreToldOf) {
  if (device_ == nullptr) return;
  class Broken final : public store::WorkingRows {
   public:
    Status Gather(std::span<const uint64_t>, std::span<float*>) override {
      return Fail(ErrorCode::kIo, "the disk is gone");
    }
    void MarkChanged(std::span<const uint64_t>) override {}
    std::shared_ptr<const store::RowDelta> TakeDelta() override { return nullptr; }
    Stats stats() const override { return {}; }
  } broken;
  RowSpace space;
  space.AddTable("one", 500, 4);
  auto cache = CachedRows::Make(*stream_, space, {0}, {.bytes = 1}, broken);
  ASSERT_TRUE(cache);
  const std::vector<uint64_t> rows = {7};
  const auto names = (*cache)->Begin(rows, DeviceRows::Purpose::kStep);
  ASSERT_FALSE(names);
  EXPECT_EQ(names.error().message, "the disk is gone");
}

}  // namespace
}  // namespace tacit::cuda::testing
