#include "workers/overview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "toy_topic.h"

namespace tacit::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;

constexpr SharedKey kOverviewKey{4}, kOtherKey{5};
constexpr Digest kOverviewBuild{6}, kOverviewHead{7};

class OverviewTest : public ::testing::Test {
 protected:
  void Plan(std::vector<Slice> slices, const Digest& head = kOverviewHead) {
    overview_.SeePlan(EncodePlan(kOverviewKey, {.head = head,
                                                .build = kOverviewBuild,
                                                .version = 9,
                                                .learners = {{.key = 2, .step = 5}},
                                                .slices = std::move(slices)}));
  }
  void Hello(const std::string& worker, int64_t time_ms, bool leaves = false) {
    const KafkaRecord record = SealHello(
        kOverviewKey,
        {.origin = {worker, kOverviewHead, kOverviewBuild}, .version = 9, .leaves = leaves});
    overview_.SeeSums(record.key, record.value, time_ms);
  }
  std::vector<KafkaRecord> Sealed(const Ranges& ranges, const SharedKey& key = kOverviewKey,
                                  const Digest& head = kOverviewHead) const {
    return SealBody(key, {"w", head, kOverviewBuild}, EncodeBody(ToyBody(topic_, head, ranges)));
  }
  void See(const KafkaRecord& record) { overview_.SeeSums(record.key, record.value, 0); }
  std::vector<uint64_t> Delivered() const {
    std::vector<uint64_t> delivered;
    for (const Overview::Progress& slice : overview_.slices()) delivered.push_back(slice.delivered);
    return delivered;
  }

  const ToyTopic topic_{3, 2, 500};
  Overview overview_{kOverviewKey};
};

TEST_F(OverviewTest, TheNewestPlanAndTheLastHelloCount) {
  EXPECT_THAT(overview_.slices(), IsEmpty());
  Plan({{"w-1", {{0, 0, 10}}}});
  Plan({{"w-1", {{0, 0, 30}, {1, 5, 6}}}, {"", {{1, 6, 8}}}});
  Hello("w-1", 100);
  Hello("w-2", 150);
  Hello("w-1", 200);
  Hello("w-2", 250, /*leaves=*/true);
  EXPECT_EQ(overview_.plan()->version, 9u);
  ASSERT_THAT(overview_.workers(), ElementsAre(Key("w-1")));
  EXPECT_EQ(overview_.workers().at("w-1").at_ms, 200);
  const auto slices = overview_.slices();
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].offsets, 31u);
  EXPECT_EQ(slices[1].offsets, 2u);
  EXPECT_THAT(Delivered(), ElementsAre(0, 0));
  EXPECT_THAT(overview_.unread(), IsEmpty());
}

// Old records that somebody writes again change nothing.
TEST_F(OverviewTest, WhatIsReplayedDoesNotCount) {
  const auto plan = [](int64_t time_ms, uint64_t version) {
    workers::Plan of_time;
    of_time.time_ms = time_ms;
    of_time.version = version;
    return EncodePlan(kOverviewKey, of_time);
  };
  const auto hello = [&](uint64_t number, bool leaves) {
    const KafkaRecord record = SealHello(
        kOverviewKey,
        {.origin = {"w", kOverviewHead, kOverviewBuild}, .number = number, .leaves = leaves});
    overview_.SeeSums(record.key, record.value, static_cast<int64_t>(number));
  };
  for (const int64_t time_ms : {20, 30, 10}) overview_.SeePlan(plan(time_ms, 100 + time_ms));
  EXPECT_EQ(overview_.plan()->version, 130u);
  for (const uint64_t number : {1, 3, 2}) hello(number, false);
  EXPECT_EQ(overview_.workers().at("w").at_ms, 3);
  hello(4, true);
  hello(3, false);
  EXPECT_THAT(overview_.workers(), IsEmpty()) << "a worker that has left";
}

// Against a set of offsets: bodies that overlap, come twice, or lack a chunk.
TEST_F(OverviewTest, SlicesAreDeliveredByWholeBodies) {
  std::mt19937_64 random(1);
  bool in_part = false, in_chunks = false;
  for (int round = 0; round < 100; ++round) {
    overview_ = Overview(kOverviewKey);
    const uint64_t cut = random() % 499 + 1;
    Plan({{"a", {{0, 0, cut}}}, {"b", {{0, cut, 500}}}});
    std::set<uint64_t> summed;
    for (int i = 0; i < 4; ++i) {
      const uint64_t begin = random() % 500, end = begin + 1 + random() % (500 - begin);
      std::vector<KafkaRecord> records = Sealed({{0, begin, end}});
      in_chunks |= records.size() > 1;
      std::ranges::shuffle(records, random);
      if (random() % 4 == 0)
        records.pop_back();
      else
        for (uint64_t offset = begin; offset < end; ++offset) summed.insert(offset);
      for (const KafkaRecord& record : records) See(record);
      if (!records.empty() && random() % 2 == 0) See(records[0]);
    }
    const auto in_a =
        static_cast<uint64_t>(std::ranges::distance(summed.begin(), summed.lower_bound(cut)));
    EXPECT_THAT(Delivered(), ElementsAre(in_a, summed.size() - in_a));
    in_part |= in_a > 0 && in_a < cut;
  }
  EXPECT_TRUE(in_part && in_chunks);
  EXPECT_THAT(overview_.unread(), IsEmpty());
}

TEST_F(OverviewTest, RecordsThatCannotBeReadAreCountedByTheReason) {
  Plan({{"a", {{0, 0, 10}}}});
  const std::string plan = EncodePlan(kOtherKey, workers::Plan());
  overview_.SeePlan(plan);
  overview_.SeePlan(plan);
  See(Sealed({{0, 0, 10}}, kOtherKey)[0]);
  See(Sealed({{0, 0, 10}}, kOverviewKey, Digest{8})[0]);
  const KafkaRecord hello = SealHello(kOtherKey, {.origin = {"w", kOverviewHead, {}}});
  See(hello);
  overview_.SeeSums("x", "y", 0);
  EXPECT_THAT(overview_.unread(),
              ElementsAre(Pair(HasSubstr("hellos: "), 1), Pair(HasSubstr("plans: "), 2),
                          Pair(HasSubstr("sums: "), 1), Pair(HasSubstr("sums: "), 1)));
  EXPECT_EQ(overview_.others(), 1u);
  EXPECT_THAT(Delivered(), ElementsAre(0));
  EXPECT_EQ(overview_.plan()->head, kOverviewHead) << "a plan of another key was taken";
}

}  // namespace
}  // namespace tacit::workers
