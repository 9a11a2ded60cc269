// Heads of a ledger in a topic, signed by an operator: what was changed there is named with its
// offset, and so is a ledger that is not the one that was anchored. librdkafka's mock stands for
// the broker.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "ledger_keys.h"
#include "service.h"
#include "stream/kafka/producer.h"
#include "stream/kafka/topic_reader.h"
#include "unit/stream/mock_kafka.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
using test::Ended;
using test::SmallRun;
using testing::HasSubstr;

struct AnchorRecord {
  uint64_t offset = 0;
  std::string value;
};

class AnchorTopicTest : public testing::Test {
 protected:
  AnchorTopicTest() {
    kafka_.Create("heads", 1);
    test::WriteSmallLog(dir_, 4, 1500, 1);
    test::WriteLedgerKey(dir_, "ours");
    test::WriteLedgerKey(dir_, "theirs");
  }

  // Learns from this many days, to their end.
  void Learn(int days, const std::string& store = "store") {
    SmallRun run;
    run.store = store;
    run.files = days == 1 ? "day-0.tsv" : days == 2 ? "day-[01].tsv" : "day-[012].tsv";
    const Ended ended = test::Run({TACITD, "--config", run.WriteConfig(dir_), "--until-end"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
  }

  Ended Ledger(std::vector<std::string> words, const std::string& topic,
               const std::string& store = "store") {
    words.insert(words.begin(), {TACIT, "ledger"});
    words.insert(words.end(), {"--store", dir_ / store, "--anchors", "topic:" + topic,
                               "--bootstrap", kafka_.bootstrap()});
    return test::Run(words);
  }
  Ended Sign(const std::string& key = "ours", const std::string& topic = "heads",
             const std::string& store = "store") {
    return Ledger({"sign", "--key", dir_ / (key + ".key")}, topic, store);
  }
  Ended Verify(const std::string& topic = "heads", const std::string& store = "store") {
    return Ledger({"verify", "--public-key", dir_ / "ours.pub"}, topic, store);
  }
  void Refused(const Ended& ended, const std::string& why) {
    EXPECT_EQ(ended.exit_code, 3) << ended.out << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(why));
  }

  stream::KafkaProperties properties() const {
    return {{{"bootstrap.servers", kafka_.bootstrap()}, {"linger.ms", "0"}}};
  }
  std::vector<AnchorRecord> Records(const std::string& topic = "heads") const {
    std::vector<AnchorRecord> records;
    const Status read = stream::ReadKafkaTail(
        properties(), topic, 1000, test::kPatience,
        [&](const stream::KafkaTopicRecord& record) -> Status {
          records.push_back({record.offset, std::string(record.value.value_or(""))});
          return {};
        });
    EXPECT_TRUE(read) << read.error().message;
    return records;
  }
  // A topic with the values of "heads" as `change` leaves them; returns its name.
  std::string Changed(const std::function<void(std::vector<std::string>*)>& change) {
    std::vector<std::string> values;
    for (const AnchorRecord& record : Records()) values.push_back(record.value);
    change(&values);
    const std::string topic = fmt::format("changed-{}", ++topics_);
    kafka_.Create(topic, 1);
    for (const std::string& value : values) kafka_.Write(topic, 0, value);
    kafka_.Flush();
    return topic;
  }

  const test::TempDir dir_;
  stream::MockKafka kafka_;
  int topics_ = 0;
};

TEST_F(AnchorTopicTest, HeadsAreSignedIntoATopicAndReadBack) {
  Learn(1);
  EXPECT_THAT(Verify().out, HasSubstr("topic:heads has no anchor"));
  const Ended first = Sign();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("topic:heads: anchor 0 at offset 0, commit "));
  for (const char* name : {"store", "store.witness"})
    fs::copy(dir_ / name, dir_ / (std::string("old-") + name), fs::copy_options::recursive);
  Learn(2);
  const Ended second = Sign();
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("anchor 1 at offset "));
  const Ended held = Verify();
  EXPECT_EQ(held.exit_code, 0) << held.err;
  EXPECT_THAT(held.out, HasSubstr("the ledger agrees with 2 anchors of topic:heads"));
  EXPECT_THAT(held.out, HasSubstr("each has a good signature of ed25519:"));
  // A report tells of them in the same words.
  test::WriteFile(dir_ / "kafka.yaml",
                  fmt::format("kafka: {{bootstrap.servers: \"{}\"}}\n", kafka_.bootstrap()));
  const Ended report =
      test::Run({TACIT, "privacy", "report", "--store", dir_ / "store", "--anchors", "topic:heads",
                 "--kafka", dir_ / "kafka.yaml", "--public-key", dir_ / "ours.pub"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("the ledger agrees with 2 anchors of topic:heads"));

  // An older copy ends before the newest head, and signs nothing.
  const std::string newest = fmt::format("(offset {})", Records().back().offset);
  Refused(Verify("heads", "old-store"), newest);
  Refused(Verify("heads", "old-store"), "rolled back, or is an older copy");
  Refused(Sign("ours", "heads", "old-store"), newest);
  EXPECT_EQ(Records().size(), 2u);
}

TEST_F(AnchorTopicTest, WhatIsWrongInATopicIsNamedWithItsOffset) {
  for (const int days : {1, 2, 3}) {
    Learn(days);
    ASSERT_EQ(Sign().exit_code, 0);
  }
  const std::vector<AnchorRecord> whole = Records();
  ASSERT_EQ(whole.size(), 3u);
  EXPECT_EQ(Verify(Changed([](auto*) {})).exit_code, 0);

  const std::string foreign =
      Changed([](auto* values) { values->insert(values->begin() + 1, R"({"clicks":3})"); });
  Refused(Verify(foreign), "anchors topic:" + foreign + ": offset 1 is no anchor");
  Refused(Sign("ours", foreign), "offset 1 is no anchor");
  EXPECT_EQ(Records(foreign).size(), 4u);
  Refused(Verify(Changed([](auto* values) { values->push_back(""); })), "offset 3 is no anchor");

  Refused(Verify(Changed([](auto* values) { values->erase(values->begin() + 1); })),
          "offset 1 has anchor 2, where anchor 1 is due: lines are missing");
  // Retention has taken the oldest.
  Refused(Verify(Changed([](auto* values) { values->erase(values->begin()); })),
          "offset 0 has anchor 1, where anchor 0 is due");
  Refused(Verify(Changed([](auto* values) { std::swap((*values)[1], (*values)[2]); })),
          "offset 1 has anchor 2");
  Refused(Verify(Changed([](auto* values) { (*values)[0][(*values)[0].find("_ms\":") + 6] ^= 1; })),
          "offset 1 does not follow the line before it");

  const auto forge = [](std::vector<std::string>* values) {
    char& digit = values->back()[values->back().rfind("\"signature\":\"") + 14];
    digit = digit == '0' ? '1' : '0';
  };
  Refused(Verify(Changed(forge)), "(offset 2) has a signature that is not its key's");
  const std::string other = Changed([](auto*) {});
  ASSERT_EQ(Sign("theirs", other).exit_code, 0);
  Refused(Verify(other), fmt::format("(offset {}) is signed with another key", 3));

  // A store that has learnt by itself is of another lineage.
  Learn(3, "stranger");
  const Ended stranger = Verify("heads", "stranger");
  Refused(stranger, "(offset 0)");
  Refused(stranger, "of a store of lineage ");
  Refused(Sign("ours", "heads", "stranger"), "(offset 0)");
  EXPECT_EQ(Records().size(), 3u);
}

TEST_F(AnchorTopicTest, TopicsThatAreNoneAreRefused) {
  Learn(1);
  kafka_.Create("wide", 2);
  Refused(Sign("ours", "wide"), "topic 'wide' has 2 partitions; anchors are in one");
  const Ended unnamed = Sign("ours", "");
  EXPECT_EQ(unnamed.exit_code, 2);
  EXPECT_THAT(unnamed.err, HasSubstr("names no topic"));
  const Ended without =
      test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store", "--anchors", "topic:heads"});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("say which brokers: --bootstrap HOST:PORT"));
  const Ended away = test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store", "--anchors",
                                "topic:heads", "--bootstrap", "127.0.0.1:1", "--wait", "1"});
  EXPECT_EQ(away.exit_code, 1);  // a store that refuses is 3
  EXPECT_THAT(away.err, HasSubstr("heads"));
}

}  // namespace
}  // namespace tacit
