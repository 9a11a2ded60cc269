#include "workers/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tacit::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using Holder = OpenSlice::Holder;

class BoardTest : public ::testing::Test {
 protected:
  // Time is in milliseconds.
  static Clock::TimePoint At(int64_t ms) { return Clock::TimePoint(std::chrono::milliseconds(ms)); }
  void Heard(const std::string& worker, int64_t ms, uint64_t rate = 100, bool leaves = false) {
    Hello hello{.origin = {worker, {}, build_}, .events_per_second = rate};
    hello.leaves = leaves;
    board_.Heard(hello, At(ms));
  }
  bool Look(int64_t ms) { return board_.Look(At(ms)); }

  const Digest build_{4};
  Board board_{{.build = build_, .patience = std::chrono::seconds(5)}};
};

TEST_F(BoardTest, APeriodIsDealtOutByRates) {
  Heard("a", 0, 100);
  Heard("b", 0, 300);
  board_.Deal({{0, 0, 100}, {1, 50, 150}}, At(10));
  EXPECT_THAT(board_.Announced(),
              ElementsAre(Slice{"a", {{0, 0, 50}}}, Slice{"b", {{0, 50, 100}, {1, 50, 150}}}));
  EXPECT_THAT(board_.Workers(), ElementsAre(Key("a"), Key("b")));
  // The rate of a worker that does not know its own is the others' median.
  Heard("c", 20, 0);
  board_.Deal({{0, 0, 50}}, At(30));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"a", {{0, 0, 10}}}, Slice{"b", {{0, 10, 40}}},
                                              Slice{"c", {{0, 40, 50}}}));
}

TEST_F(BoardTest, WithoutWorkersTheTrainerSumsAlone) {
  const Hello other{.origin = {"z", {}, Digest{5}}, .events_per_second = 1};
  board_.Heard(other, At(0));
  board_.Deal({{0, 0, 100}}, At(10));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"", {{0, 0, 100}}}));
  EXPECT_FALSE(Look(100'000));
  EXPECT_THAT(board_.Workers(), IsEmpty());
  // A worker that comes with another build leaves the board.
  Heard("a", 100'000);
  board_.Heard({.origin = {"a", {}, Digest{5}}}, At(100'001));
  EXPECT_THAT(board_.Workers(), IsEmpty());
}

TEST_F(BoardTest, TheSliceOfAWorkerThatIsGoneIsDealtAgain) {
  for (const char* worker : {"a", "b"}) Heard(worker, 0);
  board_.Deal({{0, 0, 20}}, At(0));
  board_.Covered("b", {{0, 10, 20}}, At(1000));
  Heard("b", 2500);
  EXPECT_FALSE(Look(3000));
  EXPECT_TRUE(Look(3001));
  ASSERT_EQ(board_.open().size(), 1u);
  EXPECT_EQ(board_.open()[0].ends, 1u);
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"b", {{0, 0, 10}}}));
  EXPECT_THAT(board_.Workers(), ElementsAre(Key("b")));
  board_.Covered("b", {{0, 0, 10}}, At(3500));
  EXPECT_THAT(board_.open(), IsEmpty());
}

TEST_F(BoardTest, AWorkerThatLeavesEndsNothing) {
  for (const char* worker : {"a", "b"}) Heard(worker, 0);
  board_.Deal({{0, 0, 20}}, At(0));
  Heard("a", 500, 100, /*leaves=*/true);
  EXPECT_TRUE(Look(600));
  ASSERT_EQ(board_.open().size(), 2u);
  EXPECT_EQ(board_.open()[0].ends, 0u);
  EXPECT_EQ(board_.open()[0].holder, Holder::kTrainer);  // b is busy
  board_.Deal({{0, 0, 20}}, At(700));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"b", {{0, 0, 20}}}));
}

TEST_F(BoardTest, ALateSliceIsDealtAgainAfterTwiceTheOthersMedian) {
  for (const char* worker : {"a", "b", "c", "d"}) Heard(worker, 0);
  board_.Deal({{0, 0, 40}}, At(0));
  board_.Covered("b", {{0, 10, 20}}, At(3000));
  board_.Covered("c", {{0, 20, 30}}, At(4000));
  board_.Covered("d", {{0, 30, 40}}, At(9000));
  for (const char* worker : {"a", "b"}) Heard(worker, 8000);
  EXPECT_FALSE(Look(8000));
  EXPECT_TRUE(Look(8001));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"b", {{0, 0, 10}}}));
  EXPECT_EQ(board_.open()[0].ends, 0u);
  // The late worker may still be first. Then nobody has anything in hand.
  board_.Covered("a", {{0, 0, 10}}, At(8500));
  EXPECT_THAT(board_.open(), IsEmpty());
}

TEST_F(BoardTest, PatienceIsTheLeast) {
  for (const char* worker : {"a", "b"}) Heard(worker, 0);
  board_.Deal({{0, 0, 20}}, At(0));
  board_.Covered("b", {{0, 10, 20}}, At(100));
  for (const char* worker : {"a", "b"}) Heard(worker, 4900);
  EXPECT_FALSE(Look(5000));
  EXPECT_TRUE(Look(5001));
}

TEST_F(BoardTest, AloneAWorkerHasTwiceTheTimeOfItsRate) {
  Heard("a", 0, 100);
  board_.Deal({{0, 0, 1000}}, At(0));
  Heard("a", 19'900);
  EXPECT_FALSE(Look(20'000));
  EXPECT_TRUE(Look(20'001));
  EXPECT_EQ(board_.open()[0].holder, Holder::kTrainer);
  // Without a rate patience decides.
  Heard("b", 20'002, 0);
  board_.Deal({}, At(30'000));
  Heard("b", 30'000, 0);
  board_.Deal({{0, 0, 1000}}, At(30'000));
  Heard("b", 35'000, 0);
  EXPECT_FALSE(Look(35'000));
  EXPECT_TRUE(Look(35'001));
}

TEST_F(BoardTest, SlowWorkersGetLess) {
  for (const char* worker : {"a", "b"}) Heard(worker, 0, 0);
  board_.Deal({{0, 0, 200}}, At(0));
  board_.Covered("a", {{0, 0, 100}}, At(1000));    // 100 offsets a second
  board_.Covered("b", {{0, 100, 200}}, At(2000));  // 50
  board_.Deal({{0, 200, 500}}, At(2000));
  EXPECT_THAT(board_.Announced(),
              ElementsAre(Slice{"a", {{0, 200, 400}}}, Slice{"b", {{0, 400, 500}}}));
  // The rate is the mean of the last and the one before: 150. A late slice halves it: 25.
  board_.Covered("a", {{0, 200, 400}}, At(3000));
  for (const char* worker : {"a", "b"}) Heard(worker, 7500, 0);
  ASSERT_TRUE(Look(7501));
  board_.Deal({{0, 500, 1200}}, At(7501));
  EXPECT_THAT(board_.Announced(),
              ElementsAre(Slice{"a", {{0, 500, 1100}}}, Slice{"b", {{0, 1100, 1200}}}));
}

TEST_F(BoardTest, TheTrainerDoesNotTryWhatEndsOthers) {
  Heard("w0", 0);
  board_.Deal({{0, 0, 10}}, At(0));
  int64_t now = 0;
  // Each worker is gone 3 s after its hello; the next one is there already.
  for (int i = 1; i <= 2; ++i) {
    Heard("w" + std::to_string(i), now + 3000);
    now += 3001;
    EXPECT_TRUE(Look(now));
    EXPECT_EQ(board_.Announced()[0].worker, "w" + std::to_string(i));
  }
  int64_t pause = 1000;
  for (uint32_t ends = 3; ends < 12; ++ends) {
    SCOPED_TRACE(ends);
    now += 4000;
    EXPECT_TRUE(Look(now));
    ASSERT_EQ(board_.open()[0].ends, ends);
    EXPECT_EQ(board_.open()[0].holder, Holder::kNobody);
    EXPECT_THAT(board_.Announced(), IsEmpty());
    const std::string next = "v" + std::to_string(ends);
    now += pause;
    Heard(next, now - 1);
    EXPECT_FALSE(Look(now - 1));
    EXPECT_TRUE(Look(now));
    EXPECT_EQ(board_.Announced()[0].worker, next);
    pause = std::min<int64_t>(2 * pause, 60'000);
  }
  // Without any worker the slice waits.
  now += 4000;
  EXPECT_TRUE(Look(now));
  EXPECT_FALSE(Look(now + 1'000'000));
  EXPECT_EQ(board_.open()[0].holder, Holder::kNobody);
}

TEST_F(BoardTest, ASliceThatEndedAWorkerWaitsForAnotherBeforeTheTrainerTriesIt) {
  for (const char* worker : {"a", "b"}) Heard(worker, 0, 1);
  board_.Deal({{0, 0, 20}}, At(0));
  Heard("b", 3000, 1);
  EXPECT_TRUE(Look(3001));
  EXPECT_EQ(board_.open()[0].holder, Holder::kNobody);
  for (const int64_t ms : {5000, 7500}) Heard("b", ms, 1);
  EXPECT_FALSE(Look(8001));
  EXPECT_TRUE(Look(8002));
  EXPECT_EQ(board_.open()[0].holder, Holder::kTrainer);
  // The trainer does not wait where no worker is there.
  EXPECT_TRUE(Look(12'000));
  ASSERT_EQ(board_.open().size(), 2u);
  EXPECT_EQ(board_.open()[1].holder, Holder::kTrainer);
}

TEST_F(BoardTest, WhatIsCoveredIsAnnouncedNoMore) {
  for (const char* worker : {"a", "b"}) Heard(worker, 0);
  board_.Deal({{0, 0, 20}}, At(0));
  board_.Covered("", {{0, 5, 12}}, At(100));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"a", {{0, 0, 5}}}, Slice{"b", {{0, 12, 20}}}));
  // A holder need not sum a slice that another has delivered: it gets the next one that is free.
  board_.Covered("", {{0, 0, 5}}, At(200));
  Heard("b", 300, 100, /*leaves=*/true);
  EXPECT_TRUE(Look(400));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"a", {{0, 12, 20}}}));
}

// Workers come, go, hang and deliver at random. The open slices are always what is not covered,
// each worker that holds one is there, and where nobody hinders it a period comes to its end.
TEST_F(BoardTest, OpenSlicesAreWhatIsNotCovered) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Board board({.build = build_, .patience = std::chrono::seconds(5)});
    std::map<std::string, int64_t> heard;
    std::set<uint64_t> left;
    for (uint64_t at = 0; at < 50; ++at) left.insert(at);
    int64_t now = 0;
    board.Deal({{0, 0, 50}}, At(now));
    for (int round = 0; round < 300 && !left.empty(); ++round) {
      now += static_cast<int64_t>(random() % 1500);
      const std::string worker(1, static_cast<char>('a' + random() % 4));
      if (random() % 2 == 0) {
        board.Heard({.origin = {worker, {}, build_}, .events_per_second = random() % 50}, At(now));
        heard[worker] = now;
      }
      board.Look(At(now));
      if (random() % 6 == 0 && !board.open().empty()) {
        const OpenSlice slice = board.open()[random() % board.open().size()];
        board.Covered(random() % 2 == 0 ? slice.worker : worker, slice.ranges, At(now));
        for (const OffsetRange& range : slice.ranges)
          for (uint64_t at = range.begin; at < range.end; ++at) left.erase(at);
      }
      std::vector<uint64_t> open;
      for (const OpenSlice& slice : board.open()) {
        for (const OffsetRange& range : slice.ranges)
          for (uint64_t at = range.begin; at < range.end; ++at) open.push_back(at);
        EXPECT_TRUE(slice.holder != Holder::kWorker || now - heard.at(slice.worker) <= 3000);
      }
      std::ranges::sort(open);
      EXPECT_TRUE(std::ranges::equal(open, left));
    }
    // A worker that works alone ends all of it, and the trainer what it holds.
    for (int round = 0; round < 200 && !board.open().empty(); ++round) {
      now += 1000;
      board.Heard({.origin = {"last", {}, build_}, .events_per_second = 10}, At(now));
      board.Look(At(now));
      for (const Slice& slice : board.Announced())
        if (slice.worker == "last" || slice.worker.empty())
          board.Covered(slice.worker, slice.ranges, At(now));
    }
    EXPECT_THAT(board.open(), IsEmpty());
  }
}

}  // namespace
}  // namespace tacit::workers
