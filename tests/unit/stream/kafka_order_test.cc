#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <random>
#include <thread>

#include "stream/kafka/order.h"
#include "support/eventually.h"

namespace tacit::stream {
namespace {

using testing::ElementsAre;
using Kind = TurnOrder::Turn::Kind;

constexpr uint64_t kBlock = TurnOrder::kBlock;

// ---- rounds

TEST(RoundQueue, ARoundHasWhatMovedSinceTheOneBefore) {
  RoundQueue rounds;
  EXPECT_FALSE(rounds.Pop());
  EXPECT_TRUE(rounds.Close(std::vector<PartitionEnd>{{1, 7}, {0, 5}}, false));
  EXPECT_TRUE(rounds.Close(std::vector<PartitionEnd>{{0, 5}, {1, 7}}, false));
  EXPECT_TRUE(rounds.Close(std::vector<PartitionEnd>{{1, 9}}, false));
  EXPECT_EQ(*rounds.Pop(), (Round{{{0, 5}, {1, 7}}}));
  EXPECT_EQ(*rounds.Pop(), (Round{{{1, 9}}}));
  EXPECT_FALSE(rounds.Pop());
  EXPECT_TRUE(rounds.empty());
}

TEST(RoundQueue, ATickNeedsThatSomethingCameSinceTheLastOne) {
  RoundQueue rounds;
  const std::vector<PartitionEnd> five{{0, 5}}, six{{0, 6}};
  rounds.Close(five, false);
  rounds.Close(five, true);  // nothing since the last round, but since the last tick
  rounds.Close(five, true);
  rounds.Close(six, true);
  EXPECT_EQ(*rounds.Pop(), (Round{{{0, 5}}, false}));
  EXPECT_EQ(*rounds.Pop(), (Round{{}, true}));
  EXPECT_EQ(*rounds.Pop(), (Round{{{0, 6}}, true}));
  EXPECT_FALSE(rounds.Pop());
}

TEST(RoundQueue, AnEndThatWentBackClosesNothing) {
  RoundQueue rounds;
  rounds.Close(std::vector<PartitionEnd>{{0, 5}, {1, 5}}, false);
  EXPECT_FALSE(rounds.Close(std::vector<PartitionEnd>{{0, 9}, {1, 4}}, false));
  EXPECT_EQ(*rounds.Pop(), (Round{{{0, 5}, {1, 5}}}));
  EXPECT_FALSE(rounds.Pop());
  rounds.Clear();
  EXPECT_TRUE(rounds.Close(std::vector<PartitionEnd>{{0, 4}}, false));
  EXPECT_EQ(*rounds.Pop(), (Round{{{0, 4}}}));
}

TEST(RoundQueue, RoundsComeOutAsTheyWentIn) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  RoundQueue rounds;
  std::deque<Round> model;
  std::vector<uint64_t> ends(50);
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0) {
      Round round;
      for (int32_t p = 0; p < 50; ++p) {
        if (random() % 10 != 0) continue;
        ends[static_cast<size_t>(p)] += 1 + random() % (uint64_t{1} << (random() % 40));
        round.moved.push_back({p, ends[static_cast<size_t>(p)]});
      }
      round.tick = random() % 20 == 0 && !round.moved.empty();
      ASSERT_TRUE(rounds.Close(round.moved, round.tick));
      if (!round.moved.empty()) model.push_back(round);
    } else {
      const auto got = rounds.Pop();
      ASSERT_EQ(got.has_value(), !model.empty());
      if (!got) continue;
      ASSERT_EQ(*got, model.front());
      model.pop_front();
    }
  }
}

// Days of them: the newest grows, nothing is lost, and those before it are what they were.
TEST(RoundQueue, WhereNoMoreFitTheNewestGrows) {
  RoundQueue rounds(100);
  uint64_t end = 0;
  for (int i = 0; i < 10'000; ++i) rounds.Close(std::vector<PartitionEnd>{{0, end += 3}}, i == 500);
  size_t popped = 0;
  bool tick = false;
  Round last;
  for (; const auto round = rounds.Pop(); ++popped) {
    last = *round;
    tick |= last.tick;
    if (popped < 20) {
      EXPECT_EQ(last, (Round{{{0, 3 * (popped + 1)}}}));
    }
  }
  EXPECT_GE(popped, 20u);
  EXPECT_LE(popped, 102u);
  EXPECT_TRUE(tick);
  EXPECT_EQ(last.moved, (std::vector<PartitionEnd>{{0, end}}));
}

TEST(RoundQueue, AReaderIsWokenByTheNextRound) {
  RoundQueue rounds;
  EXPECT_FALSE(rounds.WaitFor(std::chrono::milliseconds(1)));
  std::thread closer([&] { rounds.Close(std::vector<PartitionEnd>{{0, 1}}, false); });
  EXPECT_TRUE(rounds.WaitFor(test::kPatience));
  closer.join();
}

// ---- turns

// An order over partitions that have a record at every offset, whose timestamps a function gives.
class Partitions {
 public:
  using TimeOf = std::function<int64_t(int32_t partition, uint64_t offset)>;

  Partitions(int32_t count, TimeOf time_of) : time_of_(std::move(time_of)) {
    for (int32_t p = 0; p < count; ++p) Tell(p, 0);
  }

  // All blocks of the round, "PARTITION:BEGIN-END".
  std::vector<std::string> Read(const Round& round) {
    order.Begin(round);
    std::vector<std::string> blocks;
    while (true) {
      const auto turn = order.Next();
      if (turn.kind == Kind::kNoRound) return blocks;
      EXPECT_EQ(turn.kind, Kind::kTake);
      if (turn.kind != Kind::kTake) return blocks;
      const auto p = static_cast<size_t>(turn.partition);
      blocks.push_back(std::to_string(turn.partition) + ":" + std::to_string(next_[p]) + "-" +
                       std::to_string(turn.until));
      // In pieces of any size: the turn is not over before the block is.
      const uint64_t middle = (next_[p] + turn.until) / 2;
      if (middle > next_[p]) {
        Tell(turn.partition, middle);
        EXPECT_EQ(order.Next().partition, turn.partition);
        EXPECT_EQ(order.Next().until, turn.until);
      }
      Tell(turn.partition, turn.until);
    }
  }

  TurnOrder order;

 private:
  void Tell(int32_t partition, uint64_t next) {
    next_.resize(std::max(next_.size(), static_cast<size_t>(partition) + 1));
    next_[static_cast<size_t>(partition)] = next;
    order.Set({.partition = partition,
               .next = next,
               .head = TurnOrder::Head{next, time_of_(partition, next)}});
  }

  TimeOf time_of_;
  std::vector<uint64_t> next_;
};

TEST(TurnOrder, EqualTimesTakeTurns) {
  Partitions partitions(2, [](int32_t, uint64_t) { return 0; });
  EXPECT_THAT(partitions.Read({{{0, 2 * kBlock + 10}, {1, kBlock}}}),
              ElementsAre("0:0-4096", "1:0-4096", "0:4096-8192", "0:8192-8202"));
}

// Partition 1 has what is newer, 0 what is older.
TEST(TurnOrder, ABacklogIsTakenInTheOrderOfTime) {
  Partitions partitions(
      2, [](int32_t p, uint64_t offset) { return static_cast<int64_t>(offset) + p * 5000; });
  EXPECT_THAT(partitions.Read({{{0, 3 * kBlock}, {1, 2 * kBlock}}}),
              ElementsAre("0:0-4096", "0:4096-8192", "1:0-4096", "0:8192-12288", "1:4096-8192"));
}

// Partition 0 has a backlog of what is older; a learner has begun a period of partition 1.
TEST(TurnOrder, ABegunPeriodIsReadBeforeTheBacklogOfOthers) {
  Partitions partitions(2, [](int32_t p, uint64_t) { return p * 1000; });
  partitions.order.SetFirst(1, kBlock + 10);
  EXPECT_THAT(partitions.Read({{{0, 2 * kBlock}, {1, kBlock + 20}}}),
              ElementsAre("1:0-4096", "1:4096-4106", "0:0-4096", "0:4096-8192", "1:4106-4116"));
  // It is the first one's order again.
  EXPECT_THAT(partitions.Read({{{0, 2 * kBlock + 5}, {1, kBlock + 25}}}),
              ElementsAre("0:8192-8197", "1:4116-4121"));
}

TEST(TurnOrder, ABegunPeriodThatIsNotThereYetIsWaitedFor) {
  TurnOrder order;
  order.SetFirst(1, 8);
  order.Set({.partition = 0, .head = TurnOrder::Head{0, 5}});
  order.Set({.partition = 1});
  order.Begin({{{0, 10}, {1, 10}}});
  EXPECT_EQ(order.Next().kind, Kind::kLook);
  EXPECT_EQ(order.Next().partition, 1);
  // Its records are gone: those behind it have no precedence.
  order.Set({.partition = 1, .next = 9, .head = TurnOrder::Head{9, 6}});
  EXPECT_EQ(order.Next().partition, 0);
}

TEST(TurnOrder, WhatCameLaterIsBehindWhateverItsTimestamp) {
  Partitions partitions(2, [](int32_t p, uint64_t) { return p == 0 ? 1000 : 0; });
  EXPECT_THAT(partitions.Read({{{0, 10}}}), ElementsAre("0:0-10"));
  EXPECT_THAT(partitions.Read({{{1, 10}}}), ElementsAre("1:0-10"));
  // Blocks end at multiples, wherever a round began.
  EXPECT_THAT(partitions.Read({{{0, kBlock + 5}, {1, kBlock + 5}}}),
              ElementsAre("1:10-4096", "1:4096-4101", "0:10-4096", "0:4096-4101"));
}

TEST(TurnOrder, AHeadThatIsNotKnownIsWaitedFor) {
  TurnOrder order;
  order.Set({.partition = 0, .head = TurnOrder::Head{0, 5}});
  order.Set({.partition = 1});
  order.Set({.partition = 2});  // has nothing in the round, and is not asked
  order.Begin({{{0, 10}, {1, 10}}});
  EXPECT_EQ(order.Next().kind, Kind::kLook);
  EXPECT_EQ(order.Next().partition, 1);
  // That it ended before the round did says nothing: the records are on their way.
  order.Set({.partition = 1, .empty_until = 9});
  EXPECT_EQ(order.Next().kind, Kind::kLook);
  order.Set({.partition = 1, .head = TurnOrder::Head{3, 4}});
  EXPECT_EQ(order.Next().kind, Kind::kTake);
  EXPECT_EQ(order.Next().partition, 1);
}

TEST(TurnOrder, OffsetsWithoutARecordHoldNobodyUp) {
  TurnOrder order;
  order.Set({.partition = 0, .head = TurnOrder::Head{2 * kBlock + 1, 5}});
  order.Set({.partition = 1, .head = TurnOrder::Head{0, 6}});
  order.Begin({{
      {0, 2 * kBlock + 3},
      {1, 10},
  }});
  const auto turn = order.Next();
  EXPECT_EQ(turn.partition, 0);
  EXPECT_EQ(turn.until, 2 * kBlock + 3);
  // The rest of the round are markers of transactions: known by what follows, or by an end.
  order.Set({.partition = 0, .next = 2 * kBlock + 2});
  EXPECT_EQ(order.Next().kind, Kind::kLook);
  order.Set({.partition = 0, .next = 2 * kBlock + 2, .empty_until = 2 * kBlock + 3});
  EXPECT_EQ(order.Next().partition, 1);
  order.Set({.partition = 1, .next = 5, .head = TurnOrder::Head{12, 0}});
  EXPECT_EQ(order.Next().kind, Kind::kNoRound);
  EXPECT_EQ(order.End(0), 2 * kBlock + 3);
}

TEST(TurnOrder, ANewPartitionJoinsInTheNextRound) {
  Partitions partitions(1, [](int32_t, uint64_t) { return 0; });
  partitions.order.Begin({{{0, 10}}});
  partitions.order.Set({.partition = 1, .head = TurnOrder::Head{0, -5}});
  EXPECT_EQ(partitions.order.Next().partition, 0);
}

}  // namespace
}  // namespace tacit::stream
