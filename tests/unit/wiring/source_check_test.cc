// The look at a source's first records: which streams a first start refuses, and in which words.
#include "wiring/source_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/process.h"
#include "unit/stream/mock_kafka.h"
#include "wiring/plans/codec.h"

namespace tacit::wiring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A learner of clicks, and one of the next item.
constexpr char kLooksAtClicks[] =
    "  - id: clicks\n"
    "    model: {kind: pctr, hidden: [4]}\n"
    "    mechanism: {kind: dp-sgd}\n"
    "    participation: {mode: once, batch: 25}\n"
    "    privacy: {unit: event, epsilon: 8, delta: 1.0e-6}\n";
constexpr char kLooksAtItems[] =
    "  - id: next\n"
    "    model: {kind: transitions}\n"
    "    mechanism: {kind: counts}\n"
    "    participation: {mode: once, batch: 100, max_participations: 4}\n"
    "    privacy: {unit: user, epsilon: 8, delta: 1.0e-6}\n";

class SourceCheckTest : public ::testing::Test {
 protected:
  Assembly Assembled(const std::string& source, const std::string& more = "",
                     const std::string& learners = kLooksAtClicks) const {
    auto config = config::Parse(
        fmt::format("source: {{format: json, json: {{timestamp: /at, timestamp_unit: rfc3339}}, "
                    "{}}}\n{}"
                    "schema: {{features: [{{name: n, kind: dense}}]}}\n"
                    "learners:\n{}store: {{path: {}}}\n",
                    source, more, learners, dir_ / "store"),
        "look", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return *std::move(assembly);
  }
  Assembly OfFiles(const std::string& more = "", const std::string& sections = "",
                   const std::string& learners = kLooksAtClicks) const {
    return Assembled(fmt::format("kind: log, files: {}{}", dir_ / "*.jsonl", more), sections,
                     learners);
  }
  // A record whose time is one, or is not, by a letter.
  static std::string Record(bool good, const std::string& rest = R"(,"user":"secret")") {
    return fmt::format(R"({{"label":1,"features":{{"n":1}},"at":"2026-11-29{}10:00:00Z"{}}})",
                       good ? "T" : "t/", rest);
  }
  // The first `good` records can be learnt from, the other ones cannot.
  void WriteFile(const std::string& name, int good, int bad) const {
    std::ofstream out(dir_ / name);
    for (int i = 0; i < good + bad; ++i) out << Record(i < good) << '\n';
  }

  const test::TempDir dir_;
};

std::string WhyRefused(const Assembly& assembly) {
  const Status status = CheckFirstRecords(assembly);
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  return status.error().message;
}

TEST_F(SourceCheckTest, ARefusalHasReasonPlaceAndKeysAndNoValue) {
  WriteFile("a.jsonl", 3, 1);
  WriteFile("b.jsonl", 0, 2000);
  const std::string why = WhyRefused(OfFiles());
  EXPECT_THAT(
      why, AllOf(HasSubstr("of the first 1,000 records, read as format json, 3 can be learnt from"),
                 HasSubstr("The most frequent reason, of 997 records: timestamp (/at): "),
                 HasSubstr("the first is " + (dir_ / "a.jsonl") + ", line 4"),
                 HasSubstr("See source.json.timestamp and timestamp_unit"),
                 HasSubstr("nothing is charged"), HasSubstr("source.accept_unreadable: true"),
                 Not(HasSubstr("secret")), Not(HasSubstr("2026"))));
  EXPECT_EQ(WhyRefused(OfFiles(", accept_unreadable: true")), "");
  EXPECT_EQ(
      WhyRefused(OfFiles(", halt_above: {share: 0.5, window: 10000, epsilon: 0.1, delta: 1.0e-8}")),
      "");
}

TEST_F(SourceCheckTest, OneInAHundredIsEnoughAndFewRecordsAreNotJudged) {
  WriteFile("a.jsonl", 0, 99);
  EXPECT_EQ(WhyRefused(OfFiles()), "") << "99 records are too few";
  WriteFile("a.jsonl", 0, 100);
  EXPECT_NE(WhyRefused(OfFiles()), "");
  WriteFile("a.jsonl", 10, 990);
  EXPECT_EQ(WhyRefused(OfFiles()), "") << "one in a hundred";
  WriteFile("a.jsonl", 9, 991);
  EXPECT_NE(WhyRefused(OfFiles()), "");
  WriteFile("a.jsonl", 9, 990);
  WriteFile("b.jsonl", 2000, 0);
  EXPECT_EQ(WhyRefused(OfFiles()), "") << "the 1,000th is the first of another file";
  WriteFile("a.jsonl", 9, 991);
  EXPECT_NE(WhyRefused(OfFiles()), "") << "the 1,001st does not count";
}

// A record is good if a single learner can learn from it.
TEST_F(SourceCheckTest, WhatALearnerNeedsOfARecordIsAskedFor) {
  const std::string items = "catalogue: {file: " + (dir_ / "items.dat") + "}\n";
  test::WriteFile(dir_ / "items.dat", "one\n");
  const auto write = [&](const std::string& rest) {
    std::ofstream out(dir_ / "a.jsonl");
    for (int i = 0; i < 200; ++i) out << Record(true, rest) << '\n';
  };
  write(R"(,"item":"one")");
  EXPECT_THAT(WhyRefused(OfFiles("", items, kLooksAtItems)),
              AllOf(HasSubstr("of 200 records: user: is missing"),
                    HasSubstr("See source.json.user, and privacy.unit")));
  write(R"(,"user":"u","item":"two")");
  EXPECT_THAT(WhyRefused(OfFiles("", items, kLooksAtItems)),
              AllOf(HasSubstr("of 200 records: item: is not in the catalogue; the first is " +
                              (dir_ / "a.jsonl") + ", line 1"),
                    HasSubstr("See source.json.item and catalogue.file")));
  EXPECT_EQ(WhyRefused(OfFiles("", items, std::string(kLooksAtItems) + kLooksAtClicks)), "")
      << "the other learner learns from them";
  write(R"(,"user":"u","item":"one")");
  EXPECT_EQ(WhyRefused(OfFiles("", items, kLooksAtItems)), "");
}

TEST_F(SourceCheckTest, AStreamThatCannotBeReadOrIsMadeUpIsNotJudged) {
  EXPECT_EQ(WhyRefused(Assembled("kind: generator")), "");
  EXPECT_EQ(LookAtSource(Assembled("kind: generator")).text, "");
  WriteFile("a.jsonl", 0, 500);
  const Assembly assembly = OfFiles();
  test::WriteFile(dir_ / "a.jsonl", std::string("\x1f\x8b\x08\x00\x00", 5));  // a gzip file, cut
  EXPECT_EQ(WhyRefused(assembly), "");
  EXPECT_THAT(LookAtSource(assembly).text,
              AllOf(HasSubstr("# no record was read: "), HasSubstr(dir_ / "a.jsonl")));
}

TEST_F(SourceCheckTest, CheckConfigSaysHowManyCanBeLearntFrom) {
  WriteFile("a.jsonl", 970, 30);
  EXPECT_THAT(LookAtSource(OfFiles()).text,
              AllOf(HasSubstr("# of the first 1,000 records, read as format json, 970 can be "
                              "learnt from. The most frequent reason, of 30 records: timestamp"),
                    Not(HasSubstr("WARNING"))));
  WriteFile("a.jsonl", 20, 0);
  EXPECT_EQ(LookAtSource(OfFiles()).text,
            "# of the first 20 records, read as format json, 20 can be learnt from\n");
  WriteFile("a.jsonl", 1, 200);
  EXPECT_THAT(LookAtSource(OfFiles()).text,
              AllOf(HasSubstr("# WARNING: of the first 201 records"),
                    HasSubstr("A first start ends with status 2 here")));
  EXPECT_THAT(LookAtSource(OfFiles(", accept_unreadable: true")).text, Not(HasSubstr("WARNING")));
}

TEST_F(SourceCheckTest, FilesThatMakePeriodsTooShortAreWarnedOf) {
  const std::string items = "catalogue: {file: " + (dir_ / "items.dat") + "}\n";
  test::WriteFile(dir_ / "items.dat", "one\n");
  for (const char* name : {"a.jsonl", "b.jsonl"}) {
    std::ofstream out(dir_ / name);
    for (int i = 0; i < 20; ++i) out << Record(true, R"(,"user":"u","item":"one")") << '\n';
  }
  const auto text = [&](const std::string& participation) {
    std::string learner = kLooksAtItems;
    const std::string before = "batch: 100";
    learner.replace(learner.find(before), before.size(), participation);
    return LookAtSource(OfFiles("", items, learner)).text;
  };
  EXPECT_THAT(text("batch: 20000"),
              AllOf(HasSubstr("# WARNING: by the first file, learner 'next': a period has at most "
                              "20 records, and noise is "),
                    HasSubstr("participation.step_files: 500 makes periods longer")));
  EXPECT_THAT(text("batch: 20000, step_files: 500"), Not(HasSubstr("WARNING")));
  EXPECT_THAT(text("batch: 100"), Not(HasSubstr("WARNING"))) << "the plan says so already";
  // No number of file ends makes the period of one file longer.
  std::filesystem::remove(dir_ / "b.jsonl");
  EXPECT_THAT(
      text("batch: 20000"),
      AllOf(HasSubstr("# WARNING: by the only file, learner 'next': a period has at most "
                      "20 records, and noise is "),
            HasSubstr("more records make the period longer"), Not(HasSubstr("step_files"))));
}

// The key says nothing of how a record is read: else it would make each store's reading another.
TEST_F(SourceCheckTest, AnAcceptedStreamIsReadAsBefore) {
  WriteFile("a.jsonl", 1, 0);
  EXPECT_EQ(ReadingOf(OfFiles(", accept_unreadable: true").config), ReadingOf(OfFiles().config));
  EXPECT_THAT(config::DumpReading(OfFiles().config), Not(HasSubstr("accept_unreadable")));
  EXPECT_THAT(config::Dump(OfFiles().config), HasSubstr("accept_unreadable: false"));
}

class TopicCheckTest : public SourceCheckTest {
 protected:
  Assembly OfTopic(const std::string& source = "", const std::string& kafka = "") const {
    return Assembled("kind: kafka, topic: t" + source,
                     fmt::format("kafka: {{bootstrap.servers: '{}', group.id: g{}}}\n",
                                 kafka_.bootstrap(), kafka));
  }
  void Write(int32_t partition, int good, int bad, const std::string& before = "") {
    for (int i = 0; i < good + bad; ++i) kafka_.Write("t", partition, before + Record(i < good));
    kafka_.Flush();
  }
  // The offset of partition 1 that the group has committed; below 0: none.
  int64_t Committed() {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", kafka_.bootstrap().c_str(), nullptr, 0);
    rd_kafka_conf_set(conf, "group.id", "g", nullptr, 0);
    const stream::KafkaClient client(rd_kafka_new(RD_KAFKA_CONSUMER, conf, nullptr, 0));
    const stream::KafkaPartitions asked(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(asked.get(), "t", 1);
    EXPECT_EQ(rd_kafka_committed(client.get(), asked.get(), 10'000), RD_KAFKA_RESP_ERR_NO_ERROR);
    return asked->elems[0].offset;
  }

  stream::MockKafka kafka_;
};

TEST_F(TopicCheckTest, ATopicIsJudgedByWhatIsThereAndKeepsNoTraceOfIt) {
  kafka_.Create("t", 2);
  EXPECT_EQ(WhyRefused(OfTopic()), "") << "nothing is there";
  Write(1, 1, 199);
  EXPECT_THAT(WhyRefused(OfTopic()),
              AllOf(HasSubstr("of the first 200 records, read as format json, 1 can be learnt"),
                    HasSubstr("of 199 records: timestamp (/at)"),
                    HasSubstr("the first is t, partition 1, offset 1")));
  EXPECT_THAT(LookAtSource(OfTopic()).text,
              AllOf(HasSubstr("# topic t: has 2 partitions"),
                    HasSubstr("# WARNING: of the first 200 records")));
  EXPECT_LT(Committed(), 0) << "a group has been told of the look";
  Write(0, 200, 0);
  EXPECT_EQ(WhyRefused(OfTopic()), "");
}

TEST_F(TopicCheckTest, BrokersThatAreAwayAreNoReasonToRefuse) {
  kafka_.Create("t", 1);
  Write(0, 0, 200);
  EXPECT_NE(WhyRefused(OfTopic()), "");
  kafka_.SetDown(true);
  EXPECT_EQ(WhyRefused(OfTopic()), "");
  EXPECT_THAT(LookAtSource(OfTopic()).text,
              AllOf(HasSubstr("# topic t: was not seen"), Not(HasSubstr("learnt from"))));
}

// Frames name schemas: one that is known, and one that only a registry knows, which is away.
TEST_F(TopicCheckTest, ARegistryThatIsAwayIsNoReasonToRefuse) {
  kafka_.Create("t", 1);
  const std::string framed(
      ", framing: confluent, registry: {url: 'http://127.0.0.1:9', schemas: {7: reject}}");
  Write(0, 0, 200, std::string("\0\0\0\0\x08", 5));
  EXPECT_EQ(WhyRefused(OfTopic(framed)), "") << "a start waits for its registry";
}

TEST_F(TopicCheckTest, ASchemaThatIsRejectedIsAReason) {
  kafka_.Create("t", 1);
  Write(0, 0, 200, std::string("\0\0\0\0\x07", 5));
  EXPECT_THAT(WhyRefused(OfTopic(", framing: confluent, registry: {schemas: {7: reject}}")),
              AllOf(HasSubstr("of 200 records: schema id 7"),
                    HasSubstr("See source.framing and source.registry")));
}

}  // namespace
}  // namespace tacit::wiring
