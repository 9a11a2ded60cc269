// Tests what may become of a topic behind a daemon's back, and what the oracle makes of a topic
// that is wrong itself.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "http/client.h"
#include "support/eventually.h"
#include "system/kafka/broker.h"
#include "system/kafka/oracle.h"
#include "system/kafka/oracle_run.h"
#include "system/kafka/topic.h"

namespace tacit {
namespace {

using test::Broker;
using test::Oracle;
using test::TempDir;
using test::TopicRecord;
using testing::HasSubstr;
using testing::IsEmpty;

class TopicsTest : public testing::Test {
 protected:
  void SetUp() override {
    TACIT_NEED_BROKER(test::kDefaultVersion);
    topic_ = test::FreshName("topics");
    broker().CreateTopic(topic_, 2);
    config_ = test::WriteOracleConfig(
        dir_, "store",
        fmt::format("source: {{kind: kafka, topic: {}, format: criteo_tsv}}\n"
                    "kafka: {{bootstrap.servers: \"{}\", group.id: {}}}\n",
                    topic_, broker().bootstrap(), topic_),
        true);
  }
  static Broker& broker() { return test::SharedBroker(); }

  // This many new events, every other one in partition 0; returns their records.
  std::vector<TopicRecord> Invent(int count) {
    std::vector<TopicRecord> records;
    for (int i = 0; i < count; ++i)
      records.push_back({.partition = i % 2, .value = oracle_.Line(oracle_.Invent())});
    return records;
  }
  void Write(const std::vector<TopicRecord>& records) {
    test::WriteTopic(broker().bootstrap(), topic_, records);
  }
  test::Ended Learn() const { return test::Run({TACITD, "--config", config_, "--until-end"}); }
  std::vector<int> Applied() const {
    const auto applied = oracle_.Applied(config_);
    EXPECT_TRUE(applied) << applied.error().message;
    return applied ? *applied : std::vector<int>();
  }

  TempDir dir_;
  Oracle oracle_{8};
  std::string topic_, config_;
};

// The oracle's teeth, with a broker.
TEST_F(TopicsTest, ARecordThatIsThereTwiceIsSeenAndSoIsOneThatIsGone) {
  std::vector<TopicRecord> records = Invent(300);
  records.push_back({.partition = 1, .value = oracle_.Line(4)});  // at another offset
  Write(records);
  broker().DeleteRecordsBefore(topic_, 0, 10);  // events 0, 2, ... 18
  const test::Ended ended = Learn();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::vector<int> expected(300, 1);
  for (size_t i = 0; i < 20; i += 2) expected[i] = 0;
  expected[4] = 1;  // the first was gone before the daemon read it
  EXPECT_THAT(oracle_.Differences(Applied(), expected), IsEmpty());
  Write({{.partition = 0, .value = oracle_.Line(5)}});
  ASSERT_EQ(Learn().exit_code, 0);
  EXPECT_EQ(Applied()[5], 2);
}

TEST_F(TopicsTest, ATopicThatIsAnotherOneOrHasShrunkIsRefused) {
  Write(Invent(200));
  ASSERT_EQ(Learn().exit_code, 0);
  broker().DeleteTopic(topic_);
  ASSERT_TRUE(test::Eventually("the topic is gone", [&] {
    return test::TopicPartitions(broker().bootstrap(), topic_) <= 0;
  }));
  broker().CreateTopic(topic_, 2);
  Write(Invent(40));
  const test::Ended shrunk = Learn();
  EXPECT_NE(shrunk.exit_code, 0);
  EXPECT_THAT(shrunk.err, HasSubstr(topic_));
  Write(Invent(400));  // as long again as it was, and with other records
  const test::Ended another = Learn();
  EXPECT_NE(another.exit_code, 0);
  EXPECT_THAT(another.err, HasSubstr(topic_));
  std::vector<int> expected(oracle_.size());
  std::fill_n(expected.begin(), 200, 1);
  EXPECT_THAT(oracle_.Differences(Applied(), expected), IsEmpty());
}

// A daemon that is started before its topic says so, waits, and learns once the topic is there.
TEST_F(TopicsTest, ATopicThatIsMadeLaterIsWaitedFor) {
  topic_ = test::FreshName("later");
  config_ =
      test::WriteOracleConfig(dir_, "later",
                              fmt::format("source: {{kind: kafka, topic: {}, format: criteo_tsv}}\n"
                                          "kafka: {{bootstrap.servers: \"{}\", group.id: {}}}\n",
                                          topic_, broker().bootstrap(), topic_),
                              true);
  // A daemon that reads to the end tells of the typing error, and what to do.
  const test::Ended mistaken = Learn();
  EXPECT_NE(mistaken.exit_code, 0);
  EXPECT_THAT(mistaken.err, HasSubstr(fmt::format("topic '{}': the brokers at {}", topic_,
                                                  broker().bootstrap())));
  EXPECT_THAT(mistaken.err, HasSubstr("make it, or correct source.topic"));

  const std::string url = "unix:" + (dir_ / "s"), operators = "unix:" + (dir_ / "o");
  test::Process daemon({TACITD, "--config", config_, "--set", "serve.listen=" + url, "--set",
                        "serve.operator_listen=" + operators});
  const auto ready = [&](const std::string& at) {
    const auto answer = http::Fetch(at + ":/readyz", "GET", "", test::kPatience);
    return answer ? answer->body : std::string();
  };
  ASSERT_TRUE(test::Eventually("operators are told", [&] {
    return ready(operators).find("make it, or correct source.topic") != std::string::npos;
  })) << daemon.Err();
  EXPECT_EQ(ready(url).find(topic_), std::string::npos) << "others are not";
  const std::string told = "learning begins when the topic is there";
  ASSERT_TRUE(test::Eventually("the log says so", [&] {
    return daemon.Err().find(told) != std::string::npos;
  })) << daemon.Err();
  broker().CreateTopic(topic_, 2);
  Write(Invent(384));  // whole steps: a daemon waits for the rest of one
  const std::vector<int> expected(384, 1);
  EXPECT_TRUE(test::Eventually("all is learnt", [&] {
    const auto applied = oracle_.Applied(config_);
    return applied && *applied == expected;
  })) << daemon.Err();
  const std::string log = daemon.Err();
  const size_t first = log.find(told);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(told, first + 1), std::string::npos) << "it is said once";
}

TEST_F(TopicsTest, RecordsThatRetentionTookBeforeTheyWereReadAreNotPassedOver) {
  Write(Invent(200));
  ASSERT_EQ(Learn().exit_code, 0);
  Write(Invent(200));
  broker().DeleteRecordsBefore(topic_, 1, 150);
  const test::Ended ended = Learn();
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.err, HasSubstr(topic_));
  EXPECT_THAT(ended.err, HasSubstr("partition 1"));
}

}  // namespace
}  // namespace tacit
