// The sums of an engine's step, against an adversary who writes the other records (float_sum.h).
#include "audit/float_sum.h"

#include <gtest/gtest.h>

#include "base/threads/worker_pool.h"

namespace tacit::audit {
namespace {

using Precision = ops::Precision;

class FloatSum : public ::testing::Test {
 protected:
  double Moved(const FloatSumCase& attacked) {
    const double moved = MostMoved(attacked, HostEngineOn(*backend_));
    RecordProperty("clips", std::to_string(moved));
    return moved;
  }

  WorkerPool pool_{WorkerPool::Options{.workers = 2}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(pool_);
};

TEST_F(FloatSum, ARecordMovesItByAClipAtMost) {
  for (const size_t offsets : {2048, 16384, 131072})
    for (const std::vector<uint32_t>& hidden : {std::vector<uint32_t>{}, {64, 32}})
      for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
        const double moved = Moved({.offsets = offsets, .hidden = hidden, .precision = precision});
        EXPECT_LE(moved, 1) << offsets << " offsets, " << hidden.size() << " hidden layers";
        EXPECT_GT(moved, 0.95) << "the victim is as long as the clip";
      }
}

TEST_F(FloatSum, NeitherWithCarriers) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16})
    EXPECT_LE(
        Moved({.offsets = 16384, .hidden = {64, 32}, .precision = precision, .carrier_rank = 4}),
        1);
}

// The steps' sum as it was before blocks: the attack is one.
TEST_F(FloatSum, OneSumOfFloatsIsFoundOut) {
  EXPECT_GT(Moved({.offsets = 2048, .hidden = {64, 32}, .fault = SumFault::kOneSum}), 1.02);
  EXPECT_GT(Moved({.offsets = 16384, .hidden = {64, 32}, .fault = SumFault::kOneSum}), 3);
  EXPECT_GT(Moved({.offsets = 131072, .fault = SumFault::kOneSum}), 100);
}

// A record that is left out moves all later ones to other blocks.
TEST_F(FloatSum, BlocksOfSoManyRecordsAreFoundOut) {
  for (const std::vector<uint32_t>& hidden : {std::vector<uint32_t>{}, {64, 32}})
    EXPECT_GT(Moved({.offsets = 16384, .hidden = hidden, .fault = SumFault::kByRecords}), 1);
}

// Blocks that the engine is not told, or does not look at, cost time and no privacy.
TEST_F(FloatSum, TheEngineTakesTheStepsBlocks) {
  for (const uint32_t carrier_rank : {0, 4}) {
    FloatSumCase attacked{.offsets = 2048, .hidden = {64, 32}, .carrier_rank = carrier_rank};
    const double in_blocks = Moved(attacked);
    attacked.fault = SumFault::kOneBlock;
    const double in_one = Moved(attacked);
    EXPECT_LE(in_one, 1);
    EXPECT_NE(in_one, in_blocks);
  }
}

}  // namespace
}  // namespace tacit::audit
