// The topics of workers, as a trainer has them, on a real broker.
#include "wiring/trainer_topics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "support/eventually.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"

namespace tacit::test {
namespace {

TEST(TrainerTopicsTest, DeletionGoesOnWhereTheTopicIsMadeAnew) {
  TACIT_NEED_BROKER(kDefaultVersion);
  const std::string name = FreshName("workers"), sums = name + ".sums";
  const std::string bootstrap = SharedBroker().bootstrap();
  SharedBroker().CreateTopic(sums, 2);
  wiring::KafkaTrainerTopics topics({.topic = name, .key_file = ""},
                                    {{{"bootstrap.servers", bootstrap}}});
  size_t shown = 0;
  const auto write_and_delete = [&](int32_t partition, size_t records) {
    WriteTopic(bootstrap, sums,
               std::vector<TopicRecord>(records,
                                        {.partition = partition, .key = "key", .value = "value"}));
    shown = 0;
    const auto read = [&] {
      (void)topics.ReadSums(std::chrono::milliseconds(100), [&](auto, auto) { ++shown; });
      return shown >= records;
    };
    ASSERT_TRUE(Eventually("the records are shown", read));
    // They are shown again where the thread has begun to read anew meanwhile.
    ASSERT_TRUE(Eventually("they are deleted, and nothing is told of", [&] {
      read();
      return topics.DeleteShown() && TopicSize(bootstrap, sums) == 0;
    }));
  };
  write_and_delete(1, 5);
  SharedBroker().DeleteTopic(sums);
  SharedBroker().CreateTopic(sums, 2);
  // The other partition does not have the offsets that were there before.
  write_and_delete(0, 2);
}

// A standby that took over for a moment, or a second trainer by mistake, ends this one's writing.
// Once it is gone this one writes plans again.
TEST(TrainerTopicsTest, ATrainerWhosePlansWereRefusedOnceWritesAgain) {
  TACIT_NEED_BROKER(kDefaultVersion);
  const std::string name = FreshName("workers");
  const std::string bootstrap = SharedBroker().bootstrap();
  SharedBroker().CreateTopic(name + ".plan");
  SharedBroker().CreateTopic(name + ".sums");
  const auto open = [&] {
    return std::make_unique<wiring::KafkaTrainerTopics>(
        config::Workers{.topic = name, .key_file = ""},
        stream::KafkaProperties{{{"bootstrap.servers", bootstrap}}});
  };
  const auto written = [](wiring::KafkaTrainerTopics& topics) {
    return Eventually("a plan is written", [&] {
      (void)topics.ReadSums(std::chrono::milliseconds(10), [](auto, auto) {});
      return topics.plan_written();
    });
  };
  const auto trainer = open();
  trainer->WritePlan("one");
  ASSERT_TRUE(written(*trainer));
  auto other = open();
  other->WritePlan("two");
  ASSERT_TRUE(written(*other));
  trainer->WritePlan("three");
  ASSERT_TRUE(Eventually("it is refused", [&] { return !trainer->plan_status(); }));
  EXPECT_EQ(trainer->plan_status().error().code, ErrorCode::kRefused);
  other.reset();
  ASSERT_TRUE(written(*trainer));
  EXPECT_TRUE(trainer->plan_status());
  const auto plans = ReadTopic(bootstrap, name + ".plan");
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans.back().value, "three");
}

}  // namespace
}  // namespace tacit::test
