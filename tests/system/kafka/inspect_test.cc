// `tacit inspect --topic` beside a real broker: what it says of the topic is so, it leaves no trace
// at the brokers, and tacitd learns by its proposal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"
#include "unit/inspect/logs.h"

namespace tacit::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Makes topics for clients that ask about them, as many brokers do.
Broker& GivingBroker() {
  static Broker broker({.properties = "auto.create.topics.enable=true\n"});
  return broker;
}

class InspectTopicTest : public ::testing::Test {
 protected:
  void SetUp() override { TACIT_NEED_BROKER(kDefaultVersion); }

  std::string bootstrap() const { return GivingBroker().bootstrap(); }
  Ended Inspect(const std::string& topic, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {TACIT,         "inspect",   "--topic", topic,
                                      "--bootstrap", bootstrap(), "--wait",  "30"};
    words.insert(words.end(), more.begin(), more.end());
    return test::Run(words);
  }
  void WriteShopTo(const std::string& topic, int32_t partitions, size_t rows,
                   const ShopNames& names) const {
    std::vector<TopicRecord> records;
    for (const ShopRecord& record : ShopAsJson(3, rows, names))
      records.push_back({.partition = static_cast<int32_t>(std::hash<std::string>()(record.who) %
                                                           static_cast<size_t>(partitions)),
                         .key = record.who,
                         .value = record.json,
                         .timestamp_ms = record.when_ms});
    WriteTopic(bootstrap(), topic, records);
  }

  TempDir dir_;
};

TEST_F(InspectTopicTest, AStreamIsLearntFromByItsProposalAndNothingIsLeftAtTheBroker) {
  const std::string topic = FreshName("offers");
  // The records are of a day that has passed: they are kept for ever.
  GivingBroker().CreateTopic(topic, 4, {{"retention.ms", "-1"}});
  const ShopNames names(12);
  WriteShopTo(topic, 4, 40'000, names);
  const int64_t size = TopicSize(bootstrap(), topic);
  const Ended inspected = Inspect(topic, {"--unit", "event", "--epsilon", "8", "--delta", "1e-6",
                                          "--mode", "once", "--output", dir_ / "shop.yaml"});
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("4 partitions, 1 replica each (1 in sync), 40,000 offsets"));
  EXPECT_THAT(inspected.out, HasSubstr("retention  for ever"));
  EXPECT_THAT(inspected.out, HasSubstr("CreateTime, by the producers' clocks"));
  EXPECT_EQ(TopicSize(bootstrap(), topic), size);
  for (const std::string& group : {std::string("tacit"), "tacit-" + topic})
    for (int32_t partition = 0; partition < 4; ++partition)
      EXPECT_FALSE(ReadCommitted(bootstrap(), group, topic, partition)) << "no group has read it";

  const Ended learnt =
      test::Run({TACITD, "--config", dir_ / "shop.yaml", "--until-end", "--set",
                 "serve.listen=unix:" + (dir_ / "socket"), "--set", "training.idle_priority=false"},
                {}, std::chrono::seconds(400));
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  EXPECT_THAT(ReadFile(dir_ / "shop-data/store.dead-letters.jsonl"), IsEmpty());
  EXPECT_TRUE(ReadCommitted(bootstrap(), "tacit-" + topic, topic, 0)) << "the trainer's own group";
  // The trainer's group is left as it is by a second look.
  const auto before = ReadCommitted(bootstrap(), "tacit-" + topic, topic, 0);
  ASSERT_EQ(Inspect(topic, {"--evenly", "--rows", "2000"}).exit_code, 0);
  const auto after = ReadCommitted(bootstrap(), "tacit-" + topic, topic, 0);
  EXPECT_EQ(after->offset, before->offset);
  EXPECT_EQ(after->metadata, before->metadata);
}

TEST_F(InspectTopicTest, ATopicThatIsNotThereIsNotMade) {
  const std::string topic = FreshName("nowhere");
  const Ended inspected = Inspect(topic);
  EXPECT_EQ(inspected.exit_code, 2) << inspected.err;
  EXPECT_THAT(inspected.err, HasSubstr("its brokers know no such topic"));
  // A bare question about all topics makes none.
  EXPECT_EQ(Inspect(topic).exit_code, 2) << "nor has the first look made it";
}

TEST_F(InspectTopicTest, CompactionRetentionAndTheBrokersClockAreTold) {
  const std::string topic = FreshName("table");
  GivingBroker().CreateTopic(topic, 1,
                             {{"cleanup.policy", "compact,delete"},
                              {"retention.ms", "7200000"},
                              {"message.timestamp.type", "LogAppendTime"}});
  const ShopNames names(12);
  WriteShopTo(topic, 1, 2000, names);
  GivingBroker().DeleteRecordsBefore(topic, 0, 100);
  const Ended inspected = Inspect(topic, {"--user", "/" + names.who});
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("a record that was not read 2 hours after it came is lost"));
  EXPECT_THAT(inspected.out, HasSubstr("the topic is compacted"));
  EXPECT_THAT(inspected.out, HasSubstr("records are kept for 2 hours"));
  EXPECT_THAT(inspected.out, HasSubstr("LogAppendTime, by the brokers' clock"));
  EXPECT_THAT(inspected.out, HasSubstr("100 offsets before the first are gone already"));
  EXPECT_THAT(inspected.out, HasSubstr("looked at  partition 0: 100 to 1,999"));
  EXPECT_THAT(inspected.out, Not(HasSubstr("the key is not the user")));
}

}  // namespace
}  // namespace tacit::test
