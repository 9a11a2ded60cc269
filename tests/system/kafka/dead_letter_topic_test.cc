// Dead letters into a topic of a real broker, as Kafka Connect would write them.
#include "stream/kafka/dead_letter_topic.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/eventually.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"

namespace tacit::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class DeadLetterTopicTest : public testing::Test {
 protected:
  void SetUp() override {
    TACIT_NEED_BROKER(kDefaultVersion);
    broker_ = &SharedBroker();
    source_ = FreshName("clicks");
    dead_ = FreshName("dead");
    broker_->CreateTopic(source_, 2);
  }

  std::unique_ptr<event::DeadLetterSink> Open(
      const std::string& lineage = "lineage-1",
      size_t blocks_most = event::RecentOffsets::kBlocksMost) {
    auto sink = stream::OpenDeadLetterTopic({.properties = Properties(),
                                             .topic = dead_,
                                             .source_topic = source_,
                                             .connector = "tacit-test",
                                             .lineage = lineage,
                                             .blocks_most = blocks_most});
    EXPECT_TRUE(sink) << sink.error().message;
    return sink ? std::move(*sink) : nullptr;
  }
  stream::KafkaProperties Properties() const {
    return {{{"bootstrap.servers", broker_->bootstrap()}}};
  }
  event::DeadLetter Letter(int32_t partition, uint64_t offset, const std::string& reason = "r") {
    return {
        .origin = source_, .line = 0, .partition = partition, .offset = offset, .reason = reason};
  }
  // `count` small records in partition 0.
  void FillSource(int count) {
    std::vector<TopicRecord> records;
    for (int i = 0; i < count; ++i)
      records.push_back(
          {.partition = 0, .key = fmt::format("k{}", i), .value = fmt::format("v{}", i)});
    WriteTopic(broker_->bootstrap(), source_, records);
  }
  std::vector<TopicRecord> Dead() { return ReadTopic(broker_->bootstrap(), dead_); }

  Broker* broker_ = nullptr;
  std::string source_, dead_;
};

TEST_F(DeadLetterTopicTest, HoldsTheOriginalRecordsUnderConnectsHeaders) {
  broker_->CreateTopic(dead_, 1);
  const std::string large(10 << 20, 'x');
  const std::vector<TopicRecord> records = {{.partition = 0, .key = "good", .value = "good"},
                                            {.partition = 0,
                                             .key = "k",
                                             .value = std::string("b\0d", 3),
                                             .headers = {{"h", "1"}, {"h", ""}},
                                             .timestamp_ms = 1763640000123},
                                            {.partition = 0, .key = "tombstone"},
                                            {.partition = 1, .value = large},
                                            {.partition = 1, .key = "", .value = ""}};
  WriteTopic(broker_->bootstrap(), source_, records);
  const auto sink = Open();
  const std::vector<event::DeadLetter> letters = {Letter(0, 1, "label: 'b'"),
                                                  Letter(0, 2, "no value"),
                                                  Letter(1, 0, "too long"), Letter(1, 1, "empty")};
  const Status written = sink->Write(letters);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(sink->trouble(), "");

  const std::vector<TopicRecord> dead = Dead();
  ASSERT_EQ(dead.size(), 4u);
  const TopicRecord* const originals[] = {&records[1], &records[2], &records[3], &records[4]};
  for (size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(dead[i].key, originals[i]->key);
    EXPECT_EQ(dead[i].value, originals[i]->value);
    EXPECT_EQ(dead[i].Header("__connect.errors.topic"), source_);
    EXPECT_EQ(dead[i].Header("__connect.errors.partition"), std::to_string(letters[i].partition));
    EXPECT_EQ(dead[i].Header("__connect.errors.offset"), std::to_string(letters[i].offset));
    EXPECT_EQ(dead[i].Header("__connect.errors.connector.name"), "tacit-test");
    EXPECT_EQ(dead[i].Header("__connect.errors.task.id"), "0");
    EXPECT_EQ(dead[i].Header("__connect.errors.stage"), "VALUE_CONVERTER");
    EXPECT_EQ(dead[i].Header("__connect.errors.class.name"), "tacit::event::Codec");
    EXPECT_EQ(dead[i].Header("__connect.errors.exception.class.name"), "tacit::event::DeadLetter");
    EXPECT_EQ(dead[i].Header("__connect.errors.exception.message"), letters[i].reason);
    EXPECT_EQ(dead[i].Header("tacit.value.missing"), "");
  }
  EXPECT_EQ(dead[0].timestamp_ms, 1763640000123);
  ASSERT_GE(dead[0].headers.size(), 2u);
  EXPECT_EQ(dead[0].headers[0], (std::pair<std::string, std::string>("h", "1")));
  EXPECT_EQ(dead[0].headers[1], (std::pair<std::string, std::string>("h", "")));
}

TEST_F(DeadLetterTopicTest, ManyFarApartComeInTheirOrderAndNoneTwice) {
  broker_->CreateTopic(dead_, 1);
  FillSource(5000);
  std::vector<event::DeadLetter> letters;
  for (const uint64_t offset : {0, 1, 2, 900, 901, 3500, 4999})
    letters.push_back(Letter(0, offset));
  {
    const auto sink = Open();
    ASSERT_TRUE(sink->Write(letters));
    ASSERT_TRUE(sink->Write(letters));  // read again, after a crash of the commit
  }
  // A new start of the same store knows them; another store's letters are its own.
  letters.push_back(Letter(0, 7));
  ASSERT_TRUE(Open()->Write(letters));
  std::vector<TopicRecord> dead = Dead();
  ASSERT_EQ(dead.size(), 8u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(dead[i].value, fmt::format("v{}", letters[i].offset));
  ASSERT_TRUE(Open("lineage-2")->Write(letters));
  EXPECT_EQ(TopicSize(broker_->bootstrap(), dead_), 16);
}

// Bad records among good ones would otherwise take memory for ever.
TEST_F(DeadLetterTopicTest, TheLettersThatItRemembersAreBounded) {
  broker_->CreateTopic(dead_, 1);
  FillSource(3000);
  const auto sink = Open("lineage-1", /*blocks_most=*/2);
  const std::vector<event::DeadLetter> letters = {Letter(0, 0), Letter(0, 1000), Letter(0, 2000)};
  ASSERT_TRUE(sink->Write(letters));
  ASSERT_TRUE(sink->Write(std::span(letters).subspan(1)));
  EXPECT_EQ(Dead().size(), 3u);
  ASSERT_TRUE(sink->Write(std::span(letters).first(1)));
  EXPECT_EQ(Dead().size(), 4u);
}

TEST_F(DeadLetterTopicTest, AnOriginalThatIsGoneOrTooLargeLeavesItsLetter) {
  broker_->CreateTopic(dead_, 1, {{"max.message.bytes", "20000"}});
  FillSource(10);
  WriteTopic(
      broker_->bootstrap(), source_,
      std::vector<TopicRecord>{{.partition = 1, .key = "k", .value = std::string(30000, 'x')}});
  broker_->DeleteRecordsBefore(source_, 0, 5);
  const auto sink = Open();
  const std::vector<event::DeadLetter> letters = {Letter(0, 3), Letter(0, 6), Letter(1, 0),
                                                  Letter(0, 99)};
  const Status written = sink->Write(letters);
  ASSERT_TRUE(written) << written.error().message;
  const std::vector<TopicRecord> dead = Dead();
  ASSERT_EQ(dead.size(), 4u);
  std::map<std::string, const TopicRecord*> by_place;
  for (const TopicRecord& record : dead)
    by_place[record.Header("__connect.errors.partition") + ":" +
             record.Header("__connect.errors.offset")] = &record;
  ASSERT_EQ(by_place.size(), 4u);
  EXPECT_EQ(by_place["0:6"]->value, "v6");
  for (const char* place : {"0:3", "0:99"}) {
    EXPECT_FALSE(by_place[place]->value) << place;
    EXPECT_EQ(by_place[place]->Header("tacit.value.missing"), "gone") << place;
  }
  EXPECT_FALSE(by_place["1:0"]->value);
  EXPECT_EQ(by_place["1:0"]->key, "k");
  EXPECT_EQ(by_place["1:0"]->Header("tacit.value.missing"), "too large");
}

// Headers and a key may fill a record alone: it must not hold up the stream for ever.
TEST_F(DeadLetterTopicTest, AnOriginalTooLargeByItsHeadersOrItsKeyLeavesItsLetter) {
  broker_->CreateTopic(dead_, 1, {{"max.message.bytes", "20000"}});
  const std::string large(30000, 'x');
  WriteTopic(broker_->bootstrap(), source_,
             std::vector<TopicRecord>{
                 {.partition = 0, .key = "k", .value = "bad", .headers = {{"h", large}}},
                 {.partition = 0, .key = large, .value = "bad", .headers = {{"h", "1"}}},
                 {.partition = 0, .key = "k", .value = "bad"}});
  const auto sink = Open();
  const std::vector<event::DeadLetter> letters = {Letter(0, 0), Letter(0, 1), Letter(0, 2)};
  std::atomic<bool> done = false;
  Status written;
  std::thread writer([&] {
    written = sink->Write(letters);
    done = true;
  });
  EXPECT_TRUE(Eventually("the letters are written", [&] { return done.load(); }));
  if (!done) sink->Interrupt();
  writer.join();
  ASSERT_TRUE(written) << written.error().message;
  std::map<std::string, TopicRecord> by_offset;
  for (const TopicRecord& record : Dead())
    by_offset[record.Header("__connect.errors.offset")] = record;
  ASSERT_EQ(by_offset.size(), 3u);
  for (const char* offset : {"0", "1"}) {
    EXPECT_FALSE(by_offset[offset].key) << offset;
    EXPECT_FALSE(by_offset[offset].value) << offset;
    EXPECT_EQ(by_offset[offset].Header("h"), "") << offset;
    EXPECT_EQ(by_offset[offset].Header("tacit.value.missing"), "too large") << offset;
  }
  EXPECT_EQ(by_offset["2"].value, "bad");
}

TEST_F(DeadLetterTopicTest, WhileTheBrokerIsAwayAWriteWaitsSaysWhyAndIsDoneWhenItReturns) {
  broker_->CreateTopic(dead_, 1);
  FillSource(3);
  const auto sink = Open();
  const std::vector<event::DeadLetter> letters = {Letter(0, 0), Letter(0, 2)};
  broker_->Kill();
  std::atomic<bool> done = false;
  Status written;
  std::thread writer([&] {
    written = sink->Write(letters);
    done = true;
  });
  EXPECT_TRUE(Eventually("the sink is in trouble", [&] { return !sink->trouble().empty(); }));
  EXPECT_FALSE(done);
  EXPECT_THAT(sink->trouble(), HasSubstr(source_));
  broker_->Start();
  writer.join();
  EXPECT_TRUE(written);
  EXPECT_EQ(sink->trouble(), "");
  EXPECT_EQ(Dead().size(), 2u);
}

TEST_F(DeadLetterTopicTest, AWriteThatWaitsCanBeInterrupted) {
  broker_->CreateTopic(dead_, 1);
  const auto sink = Open();
  broker_->Suspend();
  Status written;
  const std::vector<event::DeadLetter> letters = {Letter(0, 0)};
  std::thread writer([&] { written = sink->Write(letters); });
  // Nothing tells that it waits before librdkafka's timeouts do; the pause lets it get that far.
  // The end is the same for a write that has not begun.
  std::this_thread::sleep_for(milliseconds(200));
  sink->Interrupt();
  writer.join();
  broker_->Continue();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kUnavailable);
}

TEST_F(DeadLetterTopicTest, ATopicThatIsNotThereIsNamedAtTheStart) {
  const auto sink = stream::OpenDeadLetterTopic(
      {.properties = Properties(), .topic = dead_, .source_topic = source_, .connector = "c"});
  ASSERT_FALSE(sink);
  EXPECT_EQ(sink.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(sink.error().message, HasSubstr(dead_));
}

}  // namespace
}  // namespace tacit::test
