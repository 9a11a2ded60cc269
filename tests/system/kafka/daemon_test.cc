// tacitd beside a real broker: where its dead letters go, and how it shows who it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <set>

#include "support/eventually.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"
#include "system/kafka/topic_config.h"

namespace tacit::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kRecords = 400;
bool IsBad(int i) { return i % 10 == 3; }

// Every tenth cannot be learnt from.
std::vector<TopicRecord> Clicks() {
  std::vector<TopicRecord> records;
  for (int i = 0; i < kRecords; ++i)
    records.push_back(
        {.partition = i % 2,
         .key = fmt::format("u{}", i),
         .value = IsBad(i) ? fmt::format("bad {}", i)
                           : fmt::format(R"({{"label":{},"features":{{"n":{},"c":"x{}"}}}})", i % 2,
                                         i, i % 5)});
  return records;
}

// Its 40 bad records, each once.
void ExpectDeadLetters(const std::vector<TopicRecord>& dead) {
  std::set<std::string> values;
  for (const TopicRecord& record : dead) {
    EXPECT_TRUE(values.insert(record.value.value_or("")).second) << record.value.value_or("null");
    EXPECT_THAT(record.value.value_or(""), HasSubstr("bad "));
    EXPECT_EQ(record.Header("__connect.errors.connector.name"), "tacit");
    EXPECT_NE(record.Header("__connect.errors.exception.message"), "");
  }
  EXPECT_EQ(values.size(), static_cast<size_t>(kRecords / 10));
}

class DaemonTest : public testing::Test {
 protected:
  void SetUp() override { TACIT_NEED_BROKER(kDefaultVersion); }
  TempDir dir_;
};

TEST_F(DaemonTest, DeadLettersAreInTheirTopicBeforeAnythingBehindThemIsLearnt) {
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("clicks"), dead = FreshName("dead");
  broker.CreateTopic(topic, 2);
  WriteTopic(broker.bootstrap(), topic, Clicks());
  const std::string config =
      WriteTopicConfig(dir_, topic, broker.bootstrap(), "format: json",
                       ", errors.tolerance: all, errors.deadletterqueue.topic.name: " + dead);
  const std::vector<std::string> command{TACITD, "--config", config, "--until-end"};
  Ended ended = test::Run(command);
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr(dead), HasSubstr("errors.deadletterqueue.topic.name")));

  broker.CreateTopic(dead, 3);
  ended = test::Run(command);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("40 of 400 records could not be learnt from: see " + dead));
  ExpectDeadLetters(ReadTopic(broker.bootstrap(), dead));
  // Nothing is left to be done, and nothing is done twice.
  ended = test::Run(command);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(TopicSize(broker.bootstrap(), dead), kRecords / 10);
}

// A daemon waits for its topic; one that reads to the end has nothing to read.
TEST_F(DaemonTest, ATopicThatIsNotThereIsAMistakeWhereTheEndIsAskedFor) {
  const std::string topic = FreshName("clikcs");
  const std::string config =
      WriteTopicConfig(dir_, topic, SharedBroker().bootstrap(), "format: json");
  const Ended ended = test::Run({TACITD, "--config", config, "--until-end"});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("topic '" + topic + "'"));
}

// It needs no broker, and is here because the daemon looks for one.
TEST(DaemonWithoutABrokerTest, GoesWhenAskedToWhileItLooksForOne) {
  TempDir dir;
  const std::string config = WriteTopicConfig(dir, "t", "127.0.0.1:1", "format: json");
  Process daemon({TACITD, "--config", config});
  ASSERT_TRUE(Eventually("it is past its own start", [&] {
    return std::filesystem::exists(dir / "store/CURRENT");
  })) << daemon.Err();
  daemon.Signal(SIGTERM);
  const auto ended = daemon.Wait();
  ASSERT_TRUE(ended) << "it looks on for a broker";
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

// TLS and SCRAM work with a password from a file, which is in no word that librdkafka says.
TEST_F(DaemonTest, ThePasswordComesFromAFileAndIsNowhereElse) {
  Broker broker({.secure = true});
  broker.CreateTopic("t", 2);
  WriteTopic(broker.bootstrap(), "t", Clicks());
  broker.CreateTopic("dead", 1);
  const auto config = [&](const std::string& password_file) {
    return WriteTopicConfig(
        dir_, "t", broker.sasl_tls(), "format: json",
        fmt::format(", errors.deadletterqueue.topic.name: dead, security.protocol: SASL_SSL, "
                    "sasl.mechanism: SCRAM-SHA-512, ssl.ca.location: \"{}\", sasl.username: {}, "
                    "sasl.password: {{file: \"{}\"}}, debug: all",
                    broker.ca_file(), broker.user(), password_file));
  };
  const std::string password = ReadFile(broker.password_file());
  ASSERT_GT(password.size(), 8u);
  Ended ended = test::Run({TACITD, "--config", config(broker.password_file()), "--until-end"},
                          {"TACIT_LOG_LEVEL=trace"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.err, HasSubstr("SASLMECHS"));  // it was loud indeed
  EXPECT_EQ(ended.err.find(password), std::string::npos);
  EXPECT_EQ(ended.out.find(password), std::string::npos);
  ExpectDeadLetters(ReadTopic(broker.bootstrap(), "dead"));
  for (const char* file : {"store/LOG", "store.witness"})
    EXPECT_EQ(ReadFile(dir_ / file).find(password), std::string::npos) << file;

  const std::string wrong = "a-password-nobody-has";
  WriteFile(dir_ / "wrong", wrong);
  Process daemon({TACITD, "--config", config(dir_ / "wrong")});
  EXPECT_TRUE(Eventually("it says that it is not let in", [&] {
    return daemon.Err().find("uthentication") != std::string::npos;
  })) << daemon.Err();
  EXPECT_EQ(daemon.Err().find(wrong), std::string::npos);
}

}  // namespace
}  // namespace tacit::test
