// Each kind of bad record through a real broker into a daemon: it is a dead letter and never learnt
// from, and what lies around it is learnt once. What a codec says of each is event_test's; here the
// oracle says what came of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "interaction.pb.h"
#include "system/kafka/broker.h"
#include "system/kafka/oracle.h"
#include "system/kafka/oracle_run.h"
#include "system/kafka/topic.h"

namespace tacit {
namespace {

using std::chrono::milliseconds;
using test::Oracle;
using test::TempDir;
using test::TopicRecord;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using v1::Interaction;

constexpr int64_t kYearMs = 365ll * 24 * 3'600'000;

int64_t NowMs() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A topic that is filled with good and bad records in turn, and a daemon that learns it.
class BadRecordsTest : public testing::Test {
 protected:
  void SetUp() override {
    TACIT_NEED_BROKER(test::kDefaultVersion);
    topic_ = test::FreshName("bad-records");
    test::SharedBroker().CreateTopic(topic_, 2);
  }

  // An event that is to be learnt from, in any format; and one that is not.
  size_t Good() {
    expected_.push_back(1);
    return oracle_.Invent();
  }
  size_t Bad() {
    expected_.push_back(0);
    return oracle_.Invent();
  }
  void Put(std::optional<std::string> value, std::optional<std::string> key = std::nullopt,
           int32_t partition = 0) {
    records_.push_back({.partition = partition, .key = std::move(key), .value = std::move(value)});
  }
  // The same, and a part of what its dead letter has to say.
  void PutBad(std::optional<std::string> value, const std::string& reason) {
    reasons_[NextOffset()] = reason;
    Put(std::move(value));
  }
  uint64_t NextOffset() const {
    return static_cast<uint64_t>(
        std::count_if(records_.begin(), records_.end(),
                      [](const TopicRecord& record) { return record.partition == 0; }));
  }

  std::string WriteConfig(const std::string& source, bool users = false,
                          const std::string& kafka = "") const {
    return test::WriteOracleConfig(
        dir_, "store",
        fmt::format("source: {{kind: kafka, topic: {}, {}}}\n"
                    "kafka: {{bootstrap.servers: \"{}\", group.id: {}{}}}\n",
                    topic_, source, test::SharedBroker().bootstrap(), topic_, kafka),
        /*periods=*/true, /*listen=*/"", users);
  }
  void Write() { test::WriteTopic(test::SharedBroker().bootstrap(), topic_, records_); }

  void LearnToTheEnd(const std::string& config) {
    const test::Ended ended = test::Run({TACITD, "--config", config, "--until-end"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
  }
  void ExpectLearnt(const std::string& config) const {
    const auto applied = oracle_.Applied(config);
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_THAT(oracle_.Differences(*applied, expected_), IsEmpty());
  }
  void ExpectDeadLetters() const {
    const test::DeadLetters letters = test::ReadDeadLetters(dir_ / "store.dead-letters.jsonl");
    for (const auto& [offset, reason] : reasons_) {
      const auto letter = letters.find({0, offset});
      if (letter == letters.end())
        ADD_FAILURE() << "no dead letter of offset " << offset << ", " << reason;
      else
        EXPECT_THAT(letter->second, HasSubstr(reason)) << "offset " << offset;
    }
    for (const auto& [place, reason] : letters)
      EXPECT_TRUE(place.first == 0 && reasons_.contains(place.second))
          << "a dead letter of partition " << place.first << ", offset " << place.second << ": "
          << reason;
  }
  void ExpectAllAsItShouldBe(const std::string& source) {
    Write();
    const std::string config = WriteConfig(source);
    LearnToTheEnd(config);
    ExpectLearnt(config);
    ExpectDeadLetters();
  }

  TempDir dir_;
  Oracle oracle_{7};
  std::string topic_;
  std::vector<int> expected_;
  std::vector<TopicRecord> records_;
  std::map<uint64_t, std::string> reasons_;  // by offset of partition 0
};

TEST_F(BadRecordsTest, Lines) {
  const auto good = [&] { Put(oracle_.Line(Good()), "key"); };
  good();
  PutBad(std::nullopt, "null");
  good();
  PutBad("", "");
  good();
  PutBad("2\t1\t" + oracle_.Value(Bad()), "label");
  PutBad("1\tmany\t" + oracle_.Value(Bad()), "I1");
  PutBad("1\tnan\t" + oracle_.Value(Bad()), "I1");
  PutBad("1\t1\t" + oracle_.Value(Bad()) + "\tmore", "");
  good();
  PutBad("1\t1\t" + oracle_.Value(Bad()) + std::string(10 << 20, 'x'), "max_record_bytes");
  Put(oracle_.Line(Good()), "");  // an empty key is no fault
  good();
  ExpectAllAsItShouldBe("format: criteo_tsv");
}

TEST_F(BadRecordsTest, Json) {
  const auto text = [&](size_t event, const std::string& more = "") {
    return fmt::format(R"({{"label":{},"features":{{"I1":1,"E":"{}"}}{}}})",
                       static_cast<int>(oracle_.Label(event)), oracle_.Value(event), more);
  };
  const auto good = [&] { Put(text(Good())); };
  good();
  PutBad(std::nullopt, "null");
  good();
  const std::string whole = text(Bad());
  PutBad(whole.substr(0, whole.size() - 2), "JSON");
  PutBad(fmt::format(R"({{"label":2,"features":{{"I1":1,"E":"{}"}}}})", oracle_.Value(Bad())),
         "label");
  PutBad(fmt::format(R"({{"label":1,"features":{{"I1":NaN,"E":"{}"}}}})", oracle_.Value(Bad())),
         "");
  PutBad(fmt::format(R"({{"label":1,"features":{{"I1":1e999,"E":"{}"}}}})", oracle_.Value(Bad())),
         "");
  good();
  PutBad(text(Bad(), fmt::format(R"(,"timestamp_ms":{})", NowMs() + kYearMs)), "ahead");
  PutBad(text(Bad(), fmt::format(R"(,"padding":"{}")", std::string(10 << 20, 'x'))),
         "max_record_bytes");
  Put(text(Good()), "");
  Put(text(Good(), fmt::format(R"(,"timestamp_ms":{})", NowMs() - kYearMs)));
  good();
  ExpectAllAsItShouldBe("format: json");
}

// The headers of a letter outlive the record; its value is the record itself.
TEST_F(BadRecordsTest, HeadersOfALetterAndTheLogHoldNothingOfARecord) {
  const std::string dead = test::FreshName("dead");
  test::SharedBroker().CreateTopic(dead, 1);
  for (int i = 0; i < 40; ++i)
    Put(fmt::format(R"({{"label":{0},"features":{{"I1":1,"E":"{1}"}}}})",
                    static_cast<int>(oracle_.Label(static_cast<size_t>(i))),
                    oracle_.Value(Good())));
  const char* const kBad[] = {R"({"label":"anna.secret@example.com"})",
                              R"({"label":1,"features":{"I1":"anna.secret"}})",
                              R"({"label":1,"timestamp_ms":"anna.secret"})",
                              R"({"label":1,"user":{"anna.secret":1}})", "anna.secret"};
  for (const char* value : kBad) Put(value);
  Write();
  const std::string config =
      WriteConfig("format: json", /*users=*/false, ", errors.deadletterqueue.topic.name: " + dead);
  const test::Ended ended =
      test::Run({TACITD, "--config", config, "--until-end", "--set", "log.level=debug"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const std::vector<TopicRecord> letters = test::ReadTopic(test::SharedBroker().bootstrap(), dead);
  EXPECT_EQ(letters.size(), std::size(kBad));
  for (const TopicRecord& letter : letters)
    for (const auto& [name, value] : letter.headers) EXPECT_THAT(value, Not(HasSubstr("anna")));
  for (const std::string& text : {ended.out, ended.err}) EXPECT_THAT(text, Not(HasSubstr("anna")));
}

// The same event again, at another offset, and after a start that reads what was before it. The
// private learner is of users: event ids do not decide beside one of events.
TEST_F(BadRecordsTest, CopiesOfAnEvent) {
  const auto text = [&](size_t event) {
    return fmt::format(
        R"({{"event_id":"{1}","user":"u{2}","label":{0},"features":{{"I1":1,"E":"{1}"}}}})",
        static_cast<int>(oracle_.Label(event)), oracle_.Value(event), event % 10);
  };
  const std::string config = WriteConfig("format: json, dedupe: {window: 1000}", /*users=*/true);
  for (int part = 0; part < 2; ++part) {
    for (int i = 0; i < 100; ++i) Put(text(Good()));
    for (size_t event = 0; event < oracle_.size(); event += 3) Put(text(event));
    Write();
    LearnToTheEnd(config);
    records_.clear();
  }
  ExpectLearnt(config);
  ExpectDeadLetters();
}

// Protobuf in Confluent's frame.
class FramedTest : public BadRecordsTest {
 protected:
  Interaction Message(size_t event) const {
    Interaction message;
    message.set_outcome(oracle_.Label(event) > 0 ? Interaction::POSITIVE : Interaction::NEGATIVE);
    message.add_dense(1);
    message.add_buckets(oracle_.Bucket(event));
    return message;
  }
  static std::string Frame(const std::string& payload, char schema = 7, char magic = 0) {
    return std::string{magic, 0, 0, 0, schema, 0} + payload;
  }
  std::string Framed(size_t event) const { return Frame(Message(event).SerializeAsString()); }
};

TEST_F(FramedTest, Protobuf) {
  const auto good = [&] { Put(Framed(Good())); };
  good();
  PutBad(std::nullopt, "null");
  PutBad(Frame(Message(Bad()).SerializeAsString(), 7, 5), "first byte");
  PutBad(Message(Bad()).SerializeAsString(), "first byte");
  PutBad(Frame(Message(Bad()).SerializeAsString(), 9), "rejected");
  good();
  const std::string whole = Framed(Bad());
  PutBad(whole.substr(0, whole.size() - 2), "truncated");
  Interaction message = Message(Bad());
  message.set_outcome(static_cast<Interaction::Outcome>(9));
  PutBad(Frame(message.SerializeAsString()), "outcome");
  message = Message(Bad());
  message.set_buckets(0, static_cast<uint32_t>(Oracle::kBuckets));
  PutBad(Frame(message.SerializeAsString()), "beyond");
  message = Message(Bad());
  message.set_dense(0, std::numeric_limits<float>::infinity());
  PutBad(Frame(message.SerializeAsString()), "infinite");
  message = Message(Bad());
  message.clear_dense();
  message.clear_buckets();
  v1::Feature* number = message.add_features();
  number->set_name("I1");
  number->set_number(std::nan(""));
  PutBad(Frame(message.SerializeAsString()), "finite");
  message = Message(Bad());
  message.set_timestamp_ms(NowMs() + kYearMs);
  PutBad(Frame(message.SerializeAsString()), "ahead");
  good();
  message = Message(Bad());
  message.set_item(std::string(10 << 20, 'x'));
  PutBad(Frame(message.SerializeAsString()), "max_record_bytes");
  good();
  ExpectAllAsItShouldBe(
      "format: protobuf, framing: confluent, "
      "registry: {schemas: {7: accept, 9: reject}}");
}

// There is no registry to ask, so that waiting would not help.
TEST_F(FramedTest, UnknownSchema) {
  for (int i = 0; i < 40; ++i) Put(Framed(Good()), std::nullopt, 1);
  for (int i = 0; i < 40; ++i) Put(Framed(Good()));
  PutBad(Frame(Message(Bad()).SerializeAsString(), 8),
         "schema id 8: not among the configured ones");
  for (int i = 0; i < 100; ++i) Put(Framed(Good()));
  ExpectAllAsItShouldBe("format: protobuf, framing: confluent, registry: {schemas: {7: accept}}");
}

}  // namespace
}  // namespace tacit
