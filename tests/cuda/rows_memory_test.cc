// The memory that rows on a device take, as the emulated device counts it, beside what plans say.
#include <gtest/gtest.h>

#include <numeric>

#include "config/sample.h"
#include "cuda/device/emulated.h"
#include "cuda/home_rig.h"
#include "cuda/trial_device.h"
#include "cuda/uploads.h"
#include "store/row_arrival.h"
#include "wiring/assembly.h"

namespace tacit::cuda::testing {
namespace {

using Writes = WholeRows::Writes;

wiring::Assembly Planned(const std::string& gpu, const std::string& buckets) {
  const auto config = config::Parse(
      config::kSample, "c.yaml",
      {"gpu.use=" + gpu, "schema.features.1.buckets=" + buckets, "memory.total_bytes=8GiB"});
  EXPECT_TRUE(config) << config.error().message;
  auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return *std::move(assembly);
}

// The bytes that a GPU adds to the plan of the host's memory.
uint64_t PinnedByPlan(const std::string& buckets) {
  return Planned("prefer", buckets).memory.model_bytes -
         Planned("never", buckets).memory.model_bytes;
}

struct Taken {
  bool settled = false;
  uint64_t on_device = 0, pinned = 0;
};

// Whole tables, all rows of which are written and go home, on a machine with so much memory.
Taken Take(const store::RowLayout& layout, uint64_t memory_bytes, Writes writes) {
  emulated::Reset({.memory_bytes = memory_bytes});
  const auto device = OpenDevice(0);
  EXPECT_TRUE(device);
  HomeStore store(layout);
  store::RowCache cache(layout, 1 << 24, store);
  Stream stream = MakeStream(**device);
  const auto whole = WholeRows::Make(stream, layout.space, layout.state_floats, writes, cache);
  if (!whole) return {};
  if (writes == Writes::kSomeRows) {
    EXPECT_TRUE(stream.Fill((*whole)->view().changed, 1));
  }
  Taken taken{.settled = (*whole)->Settle().has_value()};
  taken.pinned = emulated::PinnedBytesTaken();
  taken.on_device = emulated::BytesTaken() - taken.pinned;
  if (taken.settled) {
    const auto delta = cache.TakeDelta();
    EXPECT_TRUE(store::Arrive(*delta));
    EXPECT_EQ(delta->size(), layout.space.rows());
  }
  return taken;
}

// The least memory by the plan is enough, and all of it is taken; a byte less is not.
TEST(RowsMemory, WholeTablesTakeWhatTheirPlanSays) {
  const store::RowLayout layout = Planned("prefer", "200").learners.at(0).model->Rows();
  for (const Writes writes : {Writes::kSomeRows, Writes::kEveryRow}) {
    const uint64_t plan = WholeRows::Bytes(layout.space, layout.state_floats, writes);
    const Taken taken = Take(layout, plan, writes);
    EXPECT_TRUE(taken.settled);
    EXPECT_EQ(taken.on_device, plan);
    EXPECT_FALSE(Take(layout, plan - 1, writes).settled);
  }
  emulated::Reset();
}

TEST(RowsMemory, PinnedMemoryIsInThePlanOfTheHosts) {
  const store::RowLayout layout = Planned("prefer", "200").learners.at(0).model->Rows();
  const uint64_t least = WholeRows::Bytes(layout.space, layout.state_floats, Writes::kSomeRows);
  const uint64_t plan = PinnedByPlan("200");
  // Rows that go home at once take a piece more than those that go beside the next step.
  EXPECT_EQ(Take(layout, least, Writes::kSomeRows).pinned, plan);
  const uint64_t beside = Take(layout, 64 * least, Writes::kSomeRows).pinned;
  EXPECT_LT(beside, plan);
  EXPECT_GT(beside, plan / 2);
  emulated::Reset();
}

// A piece of 2^20 floats at most, and the numbers of its rows.
TEST(RowsMemory, PinnedMemoryOfLargeTablesIsThatOfAPiece) {
  constexpr uint64_t kPieces = 3 * (uint64_t{4} << 20);
  for (const char* buckets : {"300000", "3000000", "30000000"}) {
    EXPECT_GT(PinnedByPlan(buckets), kPieces - 2000) << buckets;
    EXPECT_LT(PinnedByPlan(buckets), kPieces + 100'000) << buckets;
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
