// Faults in attention's tiles are found by what their tests compare: distances from loops, and
// bits.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "unit/cuda/attention_trial.h"
#include "unit/cuda/planted_sequence.h"

namespace tacit::cuda::testing {
namespace {

using enum SequenceFault;

class PlantedTiles : public AttentionTrial {
 protected:
  static constexpr int kSeeds = kThreadsAreDear ? 1 : 5;

  ~PlantedTiles() override { PlantInAttentionTiles(kNone); }

  enum Path { kPlain, kCorrected, kRounded };

  // Runs it under a few seeds; how many of the results are too far from the loops' or differ from
  // the first one's bits. Results that are rounded may be as far again from the loops'.
  int WrongResults(SequenceFault fault, Path path = kPlain) {
    const AttentionCase of{{70, 9, 130}, 1, 12, path == kCorrected};
    const auto numbers = RandomAttention(of, 9);
    const AttentionLoops loops(of, numbers);
    PlantInAttentionTiles(fault);
    AttentionResults first;
    int wrong = 0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      NextOrder(seed);
      const AttentionResults got = path == kRounded ? RunRounded(of, numbers) : Run(of, numbers);
      if (seed == 0) first = got;
      wrong += !(loops.Distance(got) <= (path == kRounded ? 2 : 1)) || got != first;
    }
    PlantInAttentionTiles(kNone);
    return wrong;
  }
};

TEST_F(PlantedTiles, NothingIsFoundWhereNothingIsPlanted) {
  EXPECT_EQ(WrongResults(kNone), 0);
  EXPECT_EQ(WrongResults(kNone, kCorrected), 0);
  EXPECT_EQ(WrongResults(kNone, kRounded), 0);
}
TEST_F(PlantedTiles, MaskThatHidesNothingIsFound) {
  EXPECT_EQ(WrongResults(kNotCausal), kSeeds);
  EXPECT_EQ(WrongResults(kNotCausal, kRounded), kSeeds);
}
TEST_F(PlantedTiles, TilesThatAreLeftOutAreFound) {
  for (const Path path : {kPlain, kCorrected, kRounded}) {
    EXPECT_EQ(WrongResults(kKeyTileLeftOut, path), kSeeds);
    EXPECT_EQ(WrongResults(kQueryTileLeftOut, path), kSeeds);
  }
}

// Under the thread sanitizer a race ends the process.
#if defined(__SANITIZE_THREAD__)
void ExpectRace(const std::function<void()>& run) {
  EXPECT_EXIT((run(), std::exit(0)), ::testing::ExitedWithCode(66),
              "data race.*\n(.*\n)*.*attention_tiles.cu");
}
TEST_F(PlantedTiles, MissingBarriersAreNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ExpectRace([&] { WrongResults(kTilesNotAwaited); });
  ExpectRace([&] { WrongResults(kTilesNotReleased); });
}
#else
TEST_F(PlantedTiles, MissingBarriersAreFound) {
  for (const Path path : {kPlain, kCorrected, kRounded}) {
    EXPECT_GT(WrongResults(kTilesNotAwaited, path), 0);
    EXPECT_GT(WrongResults(kTilesNotReleased, path), 0);
  }
}
#endif

}  // namespace
}  // namespace tacit::cuda::testing
