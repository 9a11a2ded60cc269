// tacit replay against a real broker: each line of a log is in the topic once, after any failure.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <zlib.h>

#include <boost/json.hpp>
#include <map>
#include <random>

#include "stream/kafka/producer.h"
#include "support/json.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"
#include "system/kafka/topic_config.h"

namespace tacit::test {
namespace {

namespace json = boost::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string JsonLine(const std::string& file, int line) {
  return fmt::format(
      R"({{"event_id":"{}-{}","user":"u{}","timestamp_ms":{},"label":{},"features":{{"n":{}}}}})",
      file, line, line % 97, 1700000000000 + line, line % 2, line);
}

void WriteGzip(const std::string& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb1");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  gzclose(file);
}

class ReplayTest : public testing::Test {
 protected:
  std::string Config(const std::string& topic, const std::string& bootstrap,
                     const std::string& source = "format: json", const std::string& kafka = "") {
    return WriteTopicConfig(dir_, topic, bootstrap, source, kafka);
  }

  // JSON lines in a file of that name, and the lines.
  std::vector<std::string> WriteLog(const std::string& name, int lines) {
    std::vector<std::string> all;
    std::string text;
    for (int i = 1; i <= lines; ++i) text += all.emplace_back(JsonLine(name, i)) + "\n";
    if (name.ends_with(".gz"))
      WriteGzip(dir_ / name, text);
    else
      WriteFile(dir_ / name, text);
    return all;
  }

  std::vector<std::string> Command(const std::string& config, std::vector<std::string> more) {
    std::vector<std::string> command{TACIT, "replay", "--config", config, "--json"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  TempDir dir_;
};

// Every line once; those of a partition in the log's order; those of a user in Java's partition.
void ExpectEachOnce(const std::vector<TopicRecord>& records, const std::vector<std::string>& lines,
                    int32_t partitions) {
  std::map<std::string, int> place;
  for (const std::string& line : lines) place[line] = static_cast<int>(place.size());
  ASSERT_EQ(place.size(), lines.size());
  std::map<std::string, int> times;
  std::map<int32_t, int> last;
  for (const TopicRecord& record : records) {
    ASSERT_TRUE(record.value && record.key);
    ASSERT_TRUE(place.contains(*record.value)) << *record.value;
    EXPECT_EQ(++times[*record.value], 1) << *record.value;
    EXPECT_EQ(record.partition, stream::KafkaProducer::PartitionOfKey(*record.key, partitions));
    const int now = place[*record.value] + 1;
    EXPECT_GT(now, last[record.partition]);
    last[record.partition] = now;
  }
  EXPECT_EQ(records.size(), lines.size());
}

TEST_F(ReplayTest, KilledAtAnyMomentItGoesOnAndEachLineIsThereOnce) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("killed");
  broker.CreateTopic(topic, 4);
  const std::string config = Config(topic, broker.bootstrap());
  std::vector<std::string> lines = WriteLog("a.jsonl.gz", 12000);
  for (const std::string& line : WriteLog("b.jsonl", 8000)) lines.push_back(line);
  const std::vector<std::string> logs{dir_ / "a.jsonl.gz", dir_ / "b.jsonl"};
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  int64_t before = 0;
  for (int kill = 0; kill < 6; ++kill) {
    std::vector<std::string> command = Command(config, logs);
    command.insert(command.end(), {"--rate", "10000/s"});
    Process replay(command);
    // Dies somewhere after this many more records, if it has not ended by then.
    const int64_t until = before + std::uniform_int_distribution<int64_t>(1, 4000)(random);
    while (TopicSize(broker.bootstrap(), topic) < until &&
           !replay.WaitFor(std::chrono::milliseconds(1))) {
    }
    replay.Signal(SIGKILL);
    ASSERT_TRUE(replay.Wait());
    before = TopicSize(broker.bootstrap(), topic);
  }
  const json::object summary = Json(test::Run(Command(config, logs)));
  EXPECT_EQ(summary.at("lines"), 20000);
  EXPECT_GT(summary.at("already_there").as_int64(), 6);
  EXPECT_EQ(summary.at("already_there").as_int64() + summary.at("sent").as_int64(), 20000);
  EXPECT_EQ(summary.at("complete"), true);
  ExpectEachOnce(ReadTopic(broker.bootstrap(), topic), lines, 4);

  // Once more: nothing is left to be sent. With a later file: only that one.
  EXPECT_EQ(Json(test::Run(Command(config, logs))).at("sent"), 0);
  for (const std::string& line : WriteLog("c.jsonl", 100)) lines.push_back(line);
  std::vector<std::string> longer = logs;
  longer.push_back(dir_ / "c.jsonl");
  EXPECT_EQ(Json(test::Run(Command(config, longer))).at("sent"), 100);
  ExpectEachOnce(ReadTopic(broker.bootstrap(), topic), lines, 4);
}

TEST_F(ReplayTest, ABrokerThatDiesMeanwhileCostsNothing) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("outage");
  broker.CreateTopic(topic, 3);
  const std::vector<std::string> lines = WriteLog("a.jsonl", 10000);
  std::vector<std::string> command =
      Command(Config(topic, broker.bootstrap()), {dir_ / "a.jsonl", "--rate", "5000/s"});
  Process replay(command);
  while (TopicSize(broker.bootstrap(), topic) < 500 &&
         !replay.WaitFor(std::chrono::milliseconds(1))) {
  }
  broker.Kill();
  broker.Start();
  const auto ended = replay.WaitFor(4 * kPatience);
  ASSERT_TRUE(ended) << replay.Err();
  EXPECT_EQ(Json(*ended).at("sent"), 10000);
  ExpectEachOnce(ReadTopic(broker.bootstrap(), topic), lines, 3);
}

TEST_F(ReplayTest, StoppedItSaysSoAndAgainSendsEverythingOnceMore) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("again");
  broker.CreateTopic(topic, 2);
  std::string tsv;
  for (int i = 0; i < 2000; ++i) tsv += fmt::format("{}\t{}\tvalue-{}\n", i % 2, i, i % 7);
  WriteGzip(dir_ / "day-0.tsv.gz", tsv);
  const std::string config = Config(topic, broker.bootstrap(), "format: criteo_tsv");
  {
    // It would take minutes: it is stopped before its end, on any machine.
    Process replay(Command(config, {dir_ / "day-0.tsv.gz", "--rate", "10/s"}));
    EXPECT_TRUE(Eventually("ten lines are sent",
                           [&] { return TopicSize(broker.bootstrap(), topic) >= 10; }));
    replay.Signal(SIGTERM);
    const auto ended = replay.Wait();
    ASSERT_TRUE(ended);
    const json::object summary = Json(*ended, 1);
    EXPECT_EQ(summary.at("complete"), false);
    EXPECT_EQ(summary.at("sent").as_int64(), TopicSize(broker.bootstrap(), topic));
  }
  Json(test::Run(Command(config, {dir_ / "day-0.tsv.gz"})));
  EXPECT_EQ(TopicSize(broker.bootstrap(), topic), 2000);
  EXPECT_EQ(Json(test::Run(Command(config, {dir_ / "day-0.tsv.gz", "--again"}))).at("sent"), 2000);
  EXPECT_EQ(Json(test::Run(Command(config, {dir_ / "day-0.tsv.gz"}))).at("already_there"), 2000);

  const std::vector<TopicRecord> records = ReadTopic(broker.bootstrap(), topic);
  ASSERT_EQ(records.size(), 4000u);
  std::map<std::string, int> times;
  for (const TopicRecord& record : records) {
    EXPECT_FALSE(record.key);
    ++times[*record.value];
    EXPECT_THAT(record.Header("tacit-replay"), HasSubstr("day-0.tsv.gz:"));
  }
  EXPECT_EQ(times.size(), 2000u);
  for (const auto& [value, count] : times) EXPECT_EQ(count, 2) << value;
}

TEST_F(ReplayTest, WhatCannotGoOnIsRefusedByName) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("refused");
  broker.CreateTopic(topic, 2);
  const std::string config = Config(topic, broker.bootstrap());
  const std::string log = dir_ / "a.jsonl";
  WriteLog("a.jsonl", 50);
  Json(test::Run(Command(config, {log})));

  Ended ended = test::Run(Command(config, {log, "--key", "none"}));
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("--key user"));

  WriteFile(log, "{}\n" + ReadFile(log));
  ended = test::Run(Command(config, {log}));
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("a.jsonl is not the file"));

  WriteLog("a.jsonl", 50);
  broker.GrowTopic(topic, 3);
  ended = test::Run(Command(config, {log}));
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("2 partitions"), HasSubstr("has 3 now")));
  EXPECT_EQ(TopicSize(broker.bootstrap(), topic), 50);

  ended = test::Run(Command(Config("nowhere", broker.bootstrap()), {log}));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("'nowhere'"));
}

// Through a pipe that comes in pieces, of which none ends at the first MiB; the same bytes once
// more send the rest.
TEST_F(ReplayTest, StandardInputIsSentOnceToo) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("piped");
  broker.CreateTopic(topic, 2);
  const std::vector<std::string> lines = WriteLog("a.jsonl", 20000);
  const std::vector<std::string> command = Command(Config(topic, broker.bootstrap()), {"-"});
  const auto send = [&](const std::string& before) {
    std::vector<std::string> piped{"/bin/bash", "-c", before + " | \"$0\" \"$@\""};
    piped.insert(piped.end(), command.begin(), command.end());
    return Json(test::Run(piped));
  };
  const std::string log = dir_ / "a.jsonl";
  ASSERT_GT(ReadFile(log).size(), size_t{3} << 19) << "the first MiB names the log";
  EXPECT_EQ(send(fmt::format("(head -c 1 {0}; sleep .3; tail -c +2 {0} | head -n 15000)", log))
                .at("sent"),
            15000);
  const json::object rest =
      send(fmt::format("(head -n 17000 {0}; sleep .3; tail -n +17001 {0})", log));
  EXPECT_EQ(rest.at("already_there"), 15000);
  EXPECT_EQ(rest.at("sent"), 5000);
  ExpectEachOnce(ReadTopic(broker.bootstrap(), topic), lines, 2);
  EXPECT_THAT(test::Run(Command(Config(topic, broker.bootstrap()), {"-", log})).err,
              HasSubstr("stands alone"));
}

TEST_F(ReplayTest, ALineTooLongIsToldAndTheOthersGo) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("long");
  broker.CreateTopic(topic, 1);
  WriteFile(dir_ / "a.jsonl", "1\n" + std::string(3000, 'x') + "\n3\n");
  const Ended ended =
      test::Run(Command(Config(topic, broker.bootstrap(), "format: json, max_record_bytes: 1000"),
                        {dir_ / "a.jsonl"}));
  const json::object summary = Json(ended, 1);
  EXPECT_EQ(summary.at("not_sent"), 1);
  EXPECT_THAT(ended.err, HasSubstr("a.jsonl:2 is not sent"));
  EXPECT_EQ(TopicSize(broker.bootstrap(), topic), 2);
}

TEST_F(ReplayTest, FramesValuesWhereTheSourceExpectsIt) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("framed");
  broker.CreateTopic(topic, 1);
  const std::vector<std::string> lines = WriteLog("a.jsonl", 3);
  const std::string config = Config(topic, broker.bootstrap(),
                                    "format: json, framing: confluent, "
                                    "registry: {schemas: {258: accept}}");
  EXPECT_EQ(test::Run(Command(config, {dir_ / "a.jsonl"})).exit_code, 2);
  Json(test::Run(Command(config, {dir_ / "a.jsonl", "--schema-id", "258"})));
  const std::vector<TopicRecord> records = ReadTopic(broker.bootstrap(), topic);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(*records[0].value, std::string("\0\0\0\1\2", 5) + lines[0]);
}

// The password is right in a file of its own, then wrong: nothing that is printed holds either.
TEST_F(ReplayTest, ThroughTlsAndScramWithThePasswordInAFileAndNowhereElse) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker broker({.secure = true});
  broker.CreateTopic("t", 1);
  WriteLog("a.jsonl", 20);
  const auto config = [&](const std::string& password_file) {
    return Config("t", broker.sasl_tls(), "format: json",
                  fmt::format(", security.protocol: SASL_SSL, sasl.mechanism: SCRAM-SHA-512, "
                              "ssl.ca.location: \"{}\", sasl.username: {}, "
                              "sasl.password: {{file: \"{}\"}}, debug: all",
                              broker.ca_file(), broker.user(), password_file));
  };
  const std::vector<std::string> loud{"TACIT_LOG_LEVEL=trace"};
  const std::string password = ReadFile(broker.password_file());
  ASSERT_GT(password.size(), 8u);
  Ended ended = test::Run(Command(config(broker.password_file()), {dir_ / "a.jsonl"}), loud);
  EXPECT_EQ(Json(ended).at("sent"), 20);
  EXPECT_THAT(ended.err, HasSubstr("librdkafka"));  // it was loud indeed
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(password)));
  ended = test::Run({TACITD, "--config", config(broker.password_file()), "--check-config"}, loud);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(password)));

  const std::string wrong = "a-password-nobody-has";
  WriteFile(dir_ / "wrong", wrong);
  ended = test::Run(Command(config(dir_ / "wrong"), {dir_ / "a.jsonl"}));
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("uthentication"), Not(HasSubstr(wrong))));
  ended = test::Run(Command(config(dir_ / "missing"), {dir_ / "a.jsonl"}));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("sasl.password"), HasSubstr("missing")));
}

}  // namespace
}  // namespace tacit::test
