// The users of a restore's gap, counted in the records of a topic that has other partitions too.
#include "wiring/restore/gap_users.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.h"
#include "train/learner/position.h"
#include "unit/stream/mock_kafka.h"
#include "wiring/plans/codec.h"

namespace tacit::wiring {
namespace {

using ::testing::HasSubstr;

Assembly AssembleFor(const std::string& brokers, const std::string& store,
                     const std::string& source = "") {
  auto config = config::Parse(
      fmt::format("source: {{kind: kafka, topic: t, format: json{}}}\n"
                  "kafka: {{bootstrap.servers: '{}', group.id: g}}\n"
                  "schema: {{features: [{{name: n, kind: dense}}]}}\n"
                  "learners:\n"
                  "  - id: it\n"
                  "    model: {{kind: pctr, hidden: [4]}}\n"
                  "    mechanism: {{kind: dp-sgd, noise_multiplier: 20}}\n"
                  "    participation: {{mode: once, batch: 25, max_participations: 4}}\n"
                  "    privacy: {{unit: user, epsilon: 8, delta: 1.0e-6}}\n"
                  "store: {{path: {}}}\n",
                  source, brokers, store),
      "gap", {});
  TACIT_CHECK(config.has_value(), config.error().message);
  auto assembly = Assemble(*std::move(config));
  TACIT_CHECK(assembly.has_value(), assembly.error().message);
  return *std::move(assembly);
}

// A learner's position after three steps, all read as the configuration says.
std::string After3Steps(const Assembly& assembly, std::vector<OffsetRange> next) {
  return train::EncodePosition({.period_start = {},
                                .next = std::move(next),
                                .step = 3,
                                .reading = ReadingOf(assembly.config)});
}

// A paused partition keeps its turn before all others, so one that no gap needs must not be paused:
// its records come first here, and those of the gap would never come.
TEST(GapUsersTest, OtherPartitionsDoNotHoldUpTheCount) {
  const test::TempDir dir;
  stream::MockKafka kafka;
  kafka.Create("t", 2);
  for (const int32_t partition : {0, 1})
    for (int i = 0; i < 20; ++i)
      kafka.WriteKeyed("t", partition, "k",
                       fmt::format(R"({{"label":1,"user":"u{}","features":{{"n":1}}}})", i % 4),
                       /*timestamp_ms=*/1'700'000'000'000 + 1000 * partition + i);
  kafka.Flush();
  const Assembly assembly = AssembleFor(kafka.bootstrap(), dir / "store");
  std::vector<FoundGap> gaps(1);
  gaps[0].gap.users = store::LearnerGap::Users::kAll;
  gaps[0].gap.position = After3Steps(assembly, {{0, 10, 10}, {1, 17, 17}});
  gaps[0].unaccounted = {{1, 5, 17}};
  const Status counted = CountUsersAgain(assembly, "", {}, gaps);
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_EQ(gaps[0].gap.users, store::LearnerGap::Users::kCounted);
  ASSERT_EQ(gaps[0].gap.counted.size(), 4u);
  for (const store::UserSteps& user : gaps[0].gap.counted) EXPECT_EQ(user.steps, 3u);
}

// A witness may say anything: only what the topic has can have been read.
TEST(GapUsersTest, WhatTheTopicNeverHadIsRefused) {
  const test::TempDir dir;
  stream::MockKafka kafka;
  kafka.Create("t", 2);
  for (const int32_t partition : {0, 1})
    for (int i = 0; i < 20; ++i) kafka.WriteKeyed("t", partition, "k", "{}", 1'700'000'000'000 + i);
  kafka.Flush();
  const Assembly assembly = AssembleFor(kafka.bootstrap(), dir / "store");
  const auto reached = [&](const std::vector<OffsetRange>& next) {
    std::vector<FoundGap> gaps(1);
    gaps[0].gap.charges.emplace_back().learner = "it";
    gaps[0].gap.position = After3Steps(assembly, next);
    return CheckReach(assembly, "", gaps);
  };
  const Status there = reached({{0, 20, 20}, {1, 17, 20}});
  EXPECT_TRUE(there) << there.error().message;
  const std::pair<std::vector<OffsetRange>, std::string> forgeries[] = {
      {{{0, 21, 21}}, "partition 0: ends at offset 20, but the store has read up to offset 21"},
      {{{0, 20, 20}, {1, 17, 21}}, "partition 1: ends at offset 20"},
      {{{0, 20, 20}, {2, 5, 5}}, "partition 2: is not there"}};
  for (const auto& [next, said] : forgeries) {
    const Status refused = reached(next);
    ASSERT_FALSE(refused) << said;
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
    EXPECT_THAT(refused.error().message,
                HasSubstr("learner 'it': position.next: topic 't' " + said));
  }
}

// A record with a schema id, framed.
std::string Framed(char id, const std::string& payload) {
  return std::string("\0\0\0\0", 4) + id + payload;
}

// These records were learnt from, so their schema was known then: no registry need tell it now. A
// record with an id that somebody made up does not have everybody charged.
TEST(GapUsersTest, NoSchemaDecidesWhoIsCounted) {
  const test::TempDir dir;
  stream::MockKafka kafka;
  kafka.Create("t", 1);
  for (int i = 0; i < 5; ++i)
    kafka.Write("t", 0,
                Framed(7, fmt::format(R"({{"label":1,"user":"u{}","features":{{"n":1}}}})", i)));
  for (const std::string& nasty : {Framed(99, "{}"), Framed(99, "\xff\xfe"), std::string("\0", 1)})
    kafka.Write("t", 0, nasty);
  kafka.Flush();
  const Assembly assembly =
      AssembleFor(kafka.bootstrap(), dir / "store",
                  ", framing: confluent, registry: {url: 'http://127.0.0.1:1'}");
  std::vector<FoundGap> gaps(1);
  gaps[0].gap.users = store::LearnerGap::Users::kAll;
  gaps[0].gap.position = After3Steps(assembly, {{0, 8, 8}});
  gaps[0].unaccounted = {{0, 0, 8}};
  const Status counted = CountUsersAgain(assembly, "", {}, gaps);
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_EQ(gaps[0].gap.users, store::LearnerGap::Users::kCounted);
  EXPECT_EQ(gaps[0].gap.counted.size(), 5u);
}

// The schema got the feature n after these records were learnt from, or a record may be less far
// ahead by now: each is refused by now, and its user was in the lost steps all the same.
TEST(GapUsersTest, WhatIsRefusedByNowMayHaveBeenLearntFrom) {
  const test::TempDir dir;
  stream::MockKafka kafka;
  kafka.Create("t", 1);
  constexpr int64_t kTaken = 1'700'000'000'000, kDay = 24 * 3'600'000;
  kafka.WriteKeyed("t", 0, "k", R"({"label":1,"user":"u","features":{}})", kTaken);
  kafka.WriteKeyed("t", 0, "k",
                   fmt::format(R"({{"label":1,"user":"v","timestamp_ms":{},"features":{{"n":1}}}})",
                               kTaken + 2 * kDay),
                   kTaken);
  kafka.Flush();
  const Assembly assembly = AssembleFor(kafka.bootstrap(), dir / "store", ", missing: reject");
  std::vector<FoundGap> gaps(1);
  gaps[0].gap.users = store::LearnerGap::Users::kAll;
  gaps[0].gap.position = After3Steps(assembly, {{0, 2, 2}});
  gaps[0].unaccounted = {{0, 0, 2}};
  const Status counted = CountUsersAgain(assembly, "", {}, gaps);
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_EQ(gaps[0].gap.counted.size(), 2u);
}

// Records that retention has cut were learnt from: nothing tells whose they were.
TEST(GapUsersTest, RecordsThatAreGoneAreNotPassedOver) {
  const test::TempDir dir;
  stream::MockKafka kafka;
  kafka.Create("t", 1);
  kafka.Write("t", 0, R"({"label":1,"user":"u","features":{"n":1}})");
  kafka.Flush();
  const Assembly assembly = AssembleFor(kafka.bootstrap(), dir / "store");
  std::vector<FoundGap> gaps(1);
  gaps[0].gap.users = store::LearnerGap::Users::kAll;
  gaps[0].gap.position = After3Steps(assembly, {{0, 1, 1}});
  gaps[0].unaccounted = {{0, 0, 5}};
  const Status counted = CountUsersAgain(assembly, "", {}, gaps, std::chrono::seconds(2));
  ASSERT_FALSE(counted);
  EXPECT_EQ(counted.error().code, ErrorCode::kNotFound) << counted.error().message;
  EXPECT_EQ(gaps[0].gap.users, store::LearnerGap::Users::kAll);
}

// Another pointer to the user, a shorter longest record, or other features: records that name
// nobody now may have been learnt from.
TEST(GapUsersTest, RecordsThatWereReadInAnotherWayAreNotCounted) {
  const test::TempDir dir;
  stream::MockKafka kafka;
  kafka.Create("t", 1);
  kafka.Write("t", 0, R"({"label":1,"user":"u1","features":{"n":1}})");
  kafka.Flush();
  const Assembly then = AssembleFor(kafka.bootstrap(), dir / "store");
  const auto count = [&](const Assembly& now, uint64_t since, uint64_t counted_steps) {
    std::vector<FoundGap> gaps(1);
    gaps[0].gap.users = store::LearnerGap::Users::kAll;
    gaps[0].gap.position = train::EncodePosition({.period_start = {},
                                                  .next = {{0, 1, 1}},
                                                  .step = 3,
                                                  .reading = ReadingOf(then.config),
                                                  .reading_since = since});
    gaps[0].unaccounted = {{0, 0, 1}};
    gaps[0].counted_steps = counted_steps;
    const bool counted = CountUsersAgain(now, "", {}, gaps).has_value();
    EXPECT_EQ(gaps[0].gap.users == store::LearnerGap::Users::kCounted, counted);
    return counted;
  };
  EXPECT_TRUE(count(then, 0, 0));
  EXPECT_TRUE(count(then, 2, 2)) << "read so since the copy";
  EXPECT_FALSE(count(then, 2, 1)) << "the first steps after the copy were read in another way";
  for (const char* source : {", json: {user: /uid}", ", max_record_bytes: 64"})
    EXPECT_FALSE(count(AssembleFor(kafka.bootstrap(), dir / "store", source), 0, 0)) << source;
  EXPECT_TRUE(count(AssembleFor(kafka.bootstrap(), dir / "store", ", missing: reject"), 0, 0));
}

}  // namespace
}  // namespace tacit::wiring
