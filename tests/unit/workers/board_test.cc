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
using ::testing::Pair;
using Holder = OpenSlice::Holder;

class BoardTest : public ::testing::Test {
 protected:
  // Time is in milliseconds.
  static Clock::TimePoint At(int64_t ms) { return Clock::TimePoint(std::chrono::milliseconds(ms)); }
  void Heard(const std::string& worker, int64_t ms, uint64_t rate = 100, bool leaves = false) {
    // With a slice in hand, it has done more of it by then.
    board_.Heard({.origin = {worker, {}, {}},
                  .events_per_second = rate,
                  .offsets = 1'000'000,
                  .done = static_cast<uint64_t>(ms),
                  .leaves = leaves},
                 At(ms));
  }
  // It is there, and has done nothing.
  void HeardIdle(const std::string& worker, int64_t ms, uint64_t rate = 100) {
    board_.Heard({.origin = {worker, {}, {}}, .events_per_second = rate}, At(ms));
  }
  bool Look(int64_t ms) { return board_.Look(At(ms)); }

  Board board_{std::chrono::seconds(5)};
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
  board_.Deal({{0, 0, 100}}, At(10));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"", {{0, 0, 100}}}));
  EXPECT_FALSE(Look(100'000));
  EXPECT_THAT(board_.Workers(), IsEmpty());
  Heard("a", 100'000);
  board_.ForgetWorkers();
  board_.Deal({{0, 0, 100}}, At(100'001));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"", {{0, 0, 100}}}));
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
  // The rate is the mean of the last and the one before: 150 and 75.
  board_.Covered("a", {{0, 200, 400}}, At(3000));
  board_.Covered("b", {{0, 400, 500}}, At(3000));
  board_.Deal({{0, 500, 800}}, At(3000));
  EXPECT_THAT(board_.Announced(),
              ElementsAre(Slice{"a", {{0, 500, 700}}}, Slice{"b", {{0, 700, 800}}}));
}

// Also where it says that it is slow: a worker that does nothing is not waited for.
TEST_F(BoardTest, AWorkerThatDoesNothingIsLateAfterPatience) {
  HeardIdle("a", 0, 1);
  board_.Deal({{0, 0, 1'000'000}}, At(0));
  for (const int64_t ms : {2000, 4000}) HeardIdle("a", ms, 1);
  EXPECT_FALSE(Look(5000));
  EXPECT_TRUE(Look(5001));
  EXPECT_EQ(board_.open()[0].holder, Holder::kTrainer);
  // One that goes on is waited for by its own rate.
  Heard("a", 6000, 1, /*leaves=*/true);
  Heard("b", 6000, 1);
  board_.Deal({{0, 0, 100}}, At(6000));
  for (int64_t ms = 7000; ms < 60'000; ms += 1000) {
    Heard("b", ms, 1);
    EXPECT_FALSE(Look(ms + 1)) << ms;
  }
}

TEST_F(BoardTest, ALateWorkerRestsAndIsTriedWithLittle) {
  for (const char* worker : {"a", "b"}) Heard(worker, 0);
  board_.Deal({{0, 0, 340}}, At(-1700));
  board_.Covered("a", {{0, 0, 170}}, At(0));  // 100 offsets a second
  board_.Deal({{0, 0, 340}}, At(0));
  board_.Covered("b", {{0, 170, 340}}, At(1700));
  for (const char* worker : {"a", "b"}) HeardIdle(worker, 4900);
  EXPECT_THAT(board_.Late(), IsEmpty());
  EXPECT_TRUE(Look(5001));
  EXPECT_EQ(board_.open()[0].worker, "b");
  EXPECT_THAT(board_.Late(), ElementsAre(Pair("a", 1u)));
  // Nothing in the period that follows, also where a slice is free; then a trial of one part to
  // sixteen of the others.
  for (const char* worker : {"a", "b"}) Heard(worker, 5100);
  board_.Deal({{0, 340, 680}}, At(5100));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"b", {{0, 340, 680}}}));
  Heard("b", 5200, 100, /*leaves=*/true);
  EXPECT_TRUE(Look(5300));
  EXPECT_EQ(board_.open()[0].holder, Holder::kTrainer);
  board_.Covered("", {{0, 340, 680}}, At(5400));
  for (const char* worker : {"a", "b"}) Heard(worker, 5400);
  board_.Deal({{0, 680, 1020}}, At(5400));
  EXPECT_THAT(board_.Announced(),
              ElementsAre(Slice{"a", {{0, 680, 700}}}, Slice{"b", {{0, 700, 1020}}}));
  // A delivery ends the trial, and its rate is the last one alone: 20 offsets in .1 s.
  board_.Covered("a", {{0, 680, 700}}, At(5500));
  EXPECT_THAT(board_.Late(), IsEmpty());
  Heard("b", 5600);
  board_.Deal({{0, 1020, 1320}}, At(5600));
  EXPECT_THAT(board_.Announced(),
              ElementsAre(Slice{"a", {{0, 1020, 1220}}}, Slice{"b", {{0, 1220, 1320}}}));
}

// Beside workers on trial the trainer sums most of the period.
TEST_F(BoardTest, WithWorkersOnTrialAloneTheTrainerSumsTheRest) {
  HeardIdle("a", 0);
  board_.Deal({{0, 0, 170}}, At(0));
  for (const int64_t ms : {2500, 5000}) HeardIdle("a", ms);
  ASSERT_TRUE(Look(5001));
  HeardIdle("a", 5002);
  board_.Deal({{0, 0, 170}}, At(5002));
  EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"", {{0, 0, 170}}}));
  board_.Deal({{0, 0, 170}}, At(5003));
  EXPECT_THAT(board_.Announced(),
              ElementsAre(Slice{"", {{0, 0, 160}}}, Slice{"a", {{0, 160, 170}}}));
}

// Workers that say hello and never deliver, beside one that does, or alone: each costs patience
// seven times in a hundred periods, and a slice is tried with two of them at most.
TEST_F(BoardTest, WorkersThatNeverDeliverCostPatienceSeldom) {
  for (const int mute : {1, 4})
    for (const bool alone : {false, true}) {
      SCOPED_TRACE(::testing::Message() << mute << " mute" << (alone ? ", alone" : ""));
      Board board(std::chrono::seconds(5));
      int64_t now = 0, waited = 0;
      const auto heard = [&] {
        for (int i = 0; i < mute; ++i)
          board.Heard({.origin = {std::string("mute-") + static_cast<char>('0' + i), {}, {}},
                       .events_per_second = 1},
                      At(now));
        if (!alone) board.Heard({.origin = {"works", {}, {}}, .events_per_second = 100}, At(now));
      };
      for (int period = 0; period < 100; ++period) {
        heard();
        board.Deal({{0, 0, 1000}}, At(now));
        while (!board.open().empty()) {
          bool summed = false;
          for (const Slice& slice : board.Announced()) {
            if (!slice.worker.empty() && slice.worker != "works") continue;
            board.Covered(slice.worker, slice.ranges, At(now + 1));
            summed = true;
          }
          if (board.open().empty()) break;
          now += 100;
          if (!summed) waited += 100;
          heard();
          board.Look(At(now));
        }
        now += 1000;
      }
      EXPECT_LE(waited, 7 * mute * 5300);
      EXPECT_GE(waited, 7 * 5000);
      EXPECT_EQ(board.Late().size(), static_cast<size_t>(mute));
    }
}

TEST_F(BoardTest, ASliceThatWasLateTwiceIsTheTrainers) {
  for (const char* worker : {"a", "b", "c"}) HeardIdle(worker, 0);
  board_.Deal({{0, 0, 30}}, At(0));
  board_.Covered("b", {{0, 10, 20}}, At(10));
  board_.Covered("c", {{0, 20, 30}}, At(10));
  for (const char* worker : {"a", "b", "c"}) HeardIdle(worker, 4900);
  EXPECT_TRUE(Look(5001));
  EXPECT_EQ(board_.open()[0].worker, "b");
  for (const int64_t ms : {7500, 10'000})
    for (const char* worker : {"a", "b", "c"}) HeardIdle(worker, ms);
  EXPECT_TRUE(Look(10'002));
  EXPECT_EQ(board_.open()[0].holder, Holder::kTrainer) << "c would cost patience as well";
}

// A worker that is silent for a while keeps its rest.
TEST_F(BoardTest, AWorkerThatComesBackGoesOnResting) {
  for (int late = 1; late <= 3; ++late) {
    HeardIdle("a", late * 100'000);
    board_.Deal({{0, 0, 1700}}, At(late * 100'000));
    ASSERT_EQ(board_.Announced().back().worker, "a");
    for (const int64_t ms : {2500, 5000}) HeardIdle("a", late * 100'000 + ms);
    ASSERT_TRUE(Look(late * 100'000 + 5001));
    for (int rest = 0; rest < 1 << (late - 1); ++rest) {
      // It has been silent for long, in every second period too.
      if (rest % 2 == 0) HeardIdle("a", late * 100'000 + 50'000 + rest * 5000);
      board_.Deal({{0, 0, 1700}}, At(late * 100'000 + 50'000 + rest * 5000));
      EXPECT_THAT(board_.Announced(), ElementsAre(Slice{"", {{0, 0, 1700}}})) << late << rest;
    }
  }
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
    Board board(std::chrono::seconds(5));
    std::map<std::string, int64_t> heard;
    std::set<uint64_t> left;
    for (uint64_t at = 0; at < 50; ++at) left.insert(at);
    int64_t now = 0;
    board.Deal({{0, 0, 50}}, At(now));
    for (int round = 0; round < 300 && !left.empty(); ++round) {
      now += static_cast<int64_t>(random() % 1500);
      const std::string worker(1, static_cast<char>('a' + random() % 4));
      if (random() % 2 == 0) {
        board.Heard({.origin = {worker, {}, {}}, .events_per_second = random() % 50}, At(now));
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
      board.Heard({.origin = {"last", {}, {}}, .events_per_second = 10}, At(now));
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
