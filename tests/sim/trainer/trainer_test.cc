// Runs of the simulated trainer (world.h), under new seeds each time, and with faults that are
// planted in its sources, each of which a rule of the auditor has to find.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "sim/border.h"
#include "sim/planted.h"
#include "sim/seeds.h"
#include "sim/trainer/world.h"
#include "support/process.h"

namespace tacit::sim {
namespace {

// Its bookkeeping is its own.
TEST(SimulatedTrainer, ItsAuditorIncludesNothingOfTheRoomsThatItJudges) {
  for (const char* file : {"auditor.h", "auditor.cc"}) {
    const std::string text =
        test::ReadFile(std::string(TACIT_SOURCE_DIR "/tests/sim/trainer/") + file);
    EXPECT_THAT(text, testing::HasSubstr("#include \"sim/"));
    for (const char* room : {"daemon", "feed", "privacy", "store", "stream", "train", "wiring"})
      EXPECT_THAT(text, testing::Not(testing::HasSubstr(fmt::format("#include \"{}/", room))));
  }
}

// A schema registry alone is asked through libcurl, and no run has one.
TEST(SimulatedTrainer, EachOfItsCallsIsInTheListAndOursAreOurs) {
  for (const std::string& complaint :
       CheckBorder(TACIT_SOURCE_DIR "/tests/sim/calls.txt", "libcurl."))
    ADD_FAILURE() << complaint;
}

TEST(SimulatedTrainer, OneSeedGivesOneDisk) {
  std::set<std::pair<uint64_t, double>> ends;
  for (int run = 0; run < 2; ++run) {
    World world({.seed = FirstSeed(), .lives = 4});
    EXPECT_EQ(world.Play(), "");
    ends.emplace(world.Digest(), world.figures().hours);
  }
  EXPECT_EQ(ends.size(), 1u);
}

// With TACIT_TEST_RUNS=1 a seed repeats its run alone.
TEST(SimulatedTrainer, KeepsItsRulesUnderKillsAndFaults) {
  World::Figures all;
  int found = 0;
  for (uint64_t run = 0; run < Runs(2) && found < 3; ++run) {
    const uint64_t seed = FirstSeed() + run;
    World world({.seed = seed});
    const std::string wrong = world.Play();
    if (!wrong.empty()) {
      ++found;
      ADD_FAILURE() << "--gtest_random_seed=" << seed << ": " << wrong;
    }
    all += world.figures();
  }
  std::printf("%s\n", all.Text().c_str());
  EXPECT_GT(all.kills, 0u);
  EXPECT_GT(all.losses, 0u);
  EXPECT_GT(all.steps, 0u) << "the learner that pays has released nothing";
}

struct Row {
  Planted fault;
  const char* name;
  const char* rule;
  uint64_t first = 1;  // the search begins at this seed
};
constexpr std::array kPlanted = {
    Row{Planted::kStartsOneLate, "a start one offset late", "R1"},
    Row{Planted::kNewPartitionFromItsEnd, "a new partition from its end", "R1", 2},
    Row{Planted::kAbortedRead, "aborted records are read", "R1"},
    Row{Planted::kLettersOfOnePartition, "letters are known by offset alone", "R1", 3},
    Row{Planted::kStepUncharged, "a commit charges its first step alone", "R2"},
    Row{Planted::kLogNotSynced, "the store's log is not synced", "R3"},
    Row{Planted::kEndsWithoutBrokers, "no broker ends training", "R12"},
    Row{Planted::kWatcherGivesUp, "the ends of a topic are asked for until it fails", "R13"},
    Row{Planted::kAnchorOfCommitBefore, "an anchor names the commit before", "R4"},
};

// A campaign plants all, and another run a third of them, in turn.
TEST(SimulatedTrainer, FindsFaultsThatArePlantedWithinFiftySeeds) {
  const size_t step = std::getenv("TACIT_TEST_RUNS") == nullptr ? 3 : 1;
  for (size_t i = FirstSeed() % step; i < kPlanted.size(); i += step) {
    const Row& row = kPlanted[i];
    planted = row.fault;
    std::string wrong;
    uint64_t seed = row.first;
    for (; seed < row.first + 50; ++seed)
      if (wrong = World({.seed = seed}).Play(); !wrong.empty()) break;
    planted = Planted::kNothing;
    std::printf("%s: seed %d\n", row.name, static_cast<int>(seed));
    EXPECT_THAT(wrong, testing::HasSubstr(std::string("\n") + row.rule + ": ")) << row.name;
  }
}

}  // namespace
}  // namespace tacit::sim
