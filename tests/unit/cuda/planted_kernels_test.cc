// The emulator finds every fault that is planted, and nothing in the kernel without one.
#include "unit/cuda/planted_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cuda/device/emulated.h"
#include "cuda/device/emulator.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

constexpr size_t kNumbers = 4 * 64;
constexpr int kSeeds = 20;

// Runs it under this many seeds; how many of the results were wrong.
int WrongResults(Plant plant, int seeds = kSeeds) {
  emulated::Reset();
  auto device = OpenDevice(0);
  auto stream = Stream::Make(**device);
  const auto numbers = Counted(kNumbers);
  int wrong = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    emulator::SetSeed(static_cast<uint64_t>(seed));
    auto in = Buffer<uint32_t>::Make(**device, kNumbers),
         out = Buffer<uint32_t>::Make(**device, kNumbers);
    std::vector<uint32_t> got(kNumbers);
    EXPECT_TRUE(stream->Upload<uint32_t>(numbers, in->span()));
    EXPECT_TRUE(RunPlanted(*stream, plant, in->span(), out->span()));
    EXPECT_TRUE(stream->Download(out->span(), std::span<uint32_t>(got)));
    EXPECT_TRUE(stream->Synchronize());
    bool right = true;
    for (size_t i = 0; i < kNumbers; ++i) right &= got[i] == numbers[i / 64 * 64 + 63 - i % 64];
    wrong += !right;
  }
  return wrong;
}

class PlantedKernel : public ::testing::Test {
 protected:
  PlantedKernel() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(PlantedKernel, NothingIsFoundWhereNothingIsPlanted) {
  EXPECT_EQ(WrongResults(Plant::kNone), 0);
}

// Under the sanitizers a race ends the process; without them it shows as a wrong result.
#if defined(__SANITIZE_THREAD__)
void ExpectRace(Plant plant) {
  EXPECT_EXIT((WrongResults(plant, 3), std::exit(0)), ::testing::ExitedWithCode(66),
              "data race.*\n(.*\n)*.*planted_kernels.cu");
}
TEST_F(PlantedKernel, MissingBarrierIsNamed) { ExpectRace(Plant::kMissingBarrier); }
TEST_F(PlantedKernel, MissingWarpSyncIsNamed) { ExpectRace(Plant::kMissingWarpSync); }
TEST_F(PlantedKernel, ReadingBeforeACopyIsNamed) { ExpectRace(Plant::kReadsBeforeWait); }
TEST_F(PlantedKernel, RaceOfBlocksIsNamed) { ExpectRace(Plant::kBlocksRace); }
#else
TEST_F(PlantedKernel, MissingBarrierShows) { EXPECT_GT(WrongResults(Plant::kMissingBarrier), 0); }
TEST_F(PlantedKernel, ReadingWhatACopyHasNotBroughtShows) {
  EXPECT_EQ(WrongResults(Plant::kReadsBeforeWait), kSeeds);
}
#endif

#if defined(__SANITIZE_ADDRESS__)
TEST_F(PlantedKernel, WriteBehindSharedMemoryIsFound) {
  EXPECT_DEATH(WrongResults(Plant::kBehindShared), "heap-buffer-overflow");
}
TEST_F(PlantedKernel, WriteBehindABufferIsFound) {
  EXPECT_DEATH(WrongResults(Plant::kBehindBuffer), "heap-buffer-overflow");
}
#endif

struct Death {
  Plant plant;
  const char* message;
};

class PlantedDeath : public ::testing::TestWithParam<Death> {};

TEST_P(PlantedDeath, IsFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(WrongResults(GetParam().plant), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedDeath,
    ::testing::Values(
        Death{Plant::kDifferentBarriers, "wait at different barriers, .*planted_kernels.cu:"},
        Death{Plant::kDifferentCollectives, "lanes of a warp in different collectives"},
        Death{Plant::kBarrierInsideOneWarp, "nobody can go on"},
        Death{Plant::kEndedLane, "lane (has|that has) ended"},
        Death{Plant::kNotInItsMask, "Shuffle with a mask without it"},
        Death{Plant::kLanesThatAreNotThere, "names lanes that are not there"},
        Death{Plant::kTooMuchShared, "wants 512 bytes of shared memory, and was given 256"},
        Death{Plant::kEndsBeforeWait, "without having waited for its asynchronous copies"},
        Death{Plant::kUnaligned, "no multiple of 16"}));

TEST_F(PlantedKernel, MessageHasTheSeed) {
  EXPECT_DEATH(WrongResults(Plant::kUnaligned), "emulated kernel Planted \\(seed 1\\)");
}

}  // namespace
}  // namespace tacit::cuda::testing
