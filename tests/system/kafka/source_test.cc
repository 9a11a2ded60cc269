// The source of the stream room beside a real broker: what the mock has no notion of.
#include "stream/kafka/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>

#include "support/eventually.h"
#include "system/kafka/broker.h"
#include "system/kafka/clients.h"
#include "system/kafka/topic.h"

namespace tacit::test {
namespace {

using namespace std::chrono_literals;
using stream::PartitionOffset;
using stream::PollOutcome;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Steady = std::chrono::steady_clock;

stream::KafkaSourceOptions Options(const Broker& broker, const std::string& topic) {
  stream::KafkaSourceOptions options;
  options.properties.values = {{"bootstrap.servers", broker.bootstrap()}, {"group.id", topic}};
  options.topic = topic;
  options.refresh = 200ms;
  options.open_timeout = kPatience;  // a slow opening is not left to Poll
  return options;
}

std::unique_ptr<stream::Source> Open(stream::KafkaSourceOptions options) {
  auto source = stream::OpenKafkaSource(std::move(options), nullptr);
  EXPECT_TRUE(source) << source.error().message;
  return source ? std::move(*source) : nullptr;
}

void Write(const Broker& broker, const std::string& topic, int32_t partition, int first,
           int count) {
  std::vector<TopicRecord> records;
  for (int i = first; i < first + count; ++i)
    records.push_back({.partition = partition, .value = std::to_string(i)});
  WriteTopic(broker.bootstrap(), topic, records);
}

struct Heard {
  std::map<int32_t, std::vector<std::string>> values;
  std::map<int32_t, std::vector<uint64_t>> offsets;
  std::vector<event::PublicCut> cuts;
  size_t records = 0;
};

// Polls until it is done.
Status PollUntil(stream::Source& source, Heard* heard, const std::function<bool()>& done) {
  const auto deadline = Steady::now() + kPatience;
  while (!done()) {
    if (Steady::now() > deadline) return Fail(ErrorCode::kInternal, "it took too long");
    event::RawRecords frame;
    TACIT_ASSIGN(const PollOutcome outcome, source.Poll(50ms, &frame));
    if (outcome != PollOutcome::kRecords) continue;
    for (size_t i = 0; i < frame.size(); ++i) {
      heard->values[frame.partition].emplace_back(frame[i]);
      heard->offsets[frame.partition].push_back(frame.first_offset + i);
    }
    for (const auto& cut : frame.cuts) heard->cuts.push_back(cut);
    heard->records += frame.size();
  }
  return {};
}

void PollRecords(stream::Source& source, Heard* heard, size_t records) {
  const Status status = PollUntil(source, heard, [&] { return heard->records >= records; });
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(heard->records, records);
}

TEST(KafkaSourceTest, PartitionsThatComeLaterAreReadFromTheirBeginning) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("growing");
  broker.CreateTopic(topic, 1);
  Write(broker, topic, 0, 0, 10);
  const auto source = Open(Options(broker, topic));
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 10);
  broker.GrowTopic(topic, 3);
  Write(broker, topic, 2, 100, 10);
  Write(broker, topic, 0, 10, 10);
  PollRecords(*source, &heard, 30);
  EXPECT_THAT(source->partitions(), ElementsAre(0, 1, 2));
  EXPECT_EQ(heard.values[2].front(), "100");
  // And grown while no daemon was there.
  broker.GrowTopic(topic, 4);
  Write(broker, topic, 3, 200, 10);
  const auto next = Open(Options(broker, topic));
  ASSERT_TRUE(next->VerifyIdentity(source->Identity()));
  ASSERT_TRUE(next->Seek(std::vector<PartitionOffset>{{0, 20}, {2, 10}}));
  Heard later;
  PollRecords(*next, &later, 10);
  EXPECT_EQ(later.values[3].front(), "200");
}

// Markers of transactions take offsets; what was aborted is not there.
TEST(KafkaSourceTest, OnlyWhatWasCommittedIsReadAndHolesAreHoles) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("transactions");
  broker.CreateTopic(topic, 1);
  const Client producer =
      MakeClient(RD_KAFKA_PRODUCER, broker.bootstrap(), {{"transactional.id", topic}});
  ASSERT_EQ(rd_kafka_init_transactions(producer.get(), 60'000), nullptr);
  std::vector<std::string> committed;
  for (int round = 0; round < 6; ++round) {
    ASSERT_EQ(rd_kafka_begin_transaction(producer.get()), nullptr);
    for (int i = 0; i < 3; ++i) {
      const std::string value = std::to_string(round * 3 + i);
      ASSERT_EQ(rd_kafka_producev(producer.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                                  RD_KAFKA_V_PARTITION(0),
                                  RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
                                  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
                RD_KAFKA_RESP_ERR_NO_ERROR);
      if (round % 2 == 0) committed.push_back(value);
    }
    if (round % 2 == 0) {
      ASSERT_EQ(rd_kafka_commit_transaction(producer.get(), 60'000), nullptr);
    } else {
      ASSERT_EQ(rd_kafka_flush(producer.get(), 60'000), RD_KAFKA_RESP_ERR_NO_ERROR);
      ASSERT_EQ(rd_kafka_abort_transaction(producer.get(), 60'000), nullptr);
    }
  }
  auto options = Options(broker, topic);
  options.until_end = true;
  const auto source = Open(options);
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, committed.size());
  EXPECT_EQ(heard.values[0], committed);
  EXPECT_THAT(heard.offsets[0], ElementsAre(0, 1, 2, 8, 9, 10, 16, 17, 18));
  event::RawRecords none;
  EXPECT_TRUE(Eventually("the source has ended, with the mark of an aborted transaction", [&] {
    const auto outcome = source->Poll(50ms, &none);
    EXPECT_TRUE(outcome);
    return !outcome || *outcome == PollOutcome::kEnd;
  }));
}

TEST(KafkaSourceTest, WhatRetentionTookIsRefusedOrCut) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("retention");
  broker.CreateTopic(topic, 1);
  Write(broker, topic, 0, 0, 100);
  broker.DeleteRecordsBefore(topic, 0, 40);
  const std::vector<PartitionOffset> at{{0, 25}};
  const Status refused = Open(Options(broker, topic))->Seek(at);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr(topic), HasSubstr("partition 0: offsets 25 to 39 are gone")));
  auto options = Options(broker, topic);
  options.go_on_when_lost = true;
  const auto source = Open(options);
  ASSERT_TRUE(source->Seek(at));
  Heard heard;
  PollRecords(*source, &heard, 60);
  EXPECT_EQ(heard.values[0].front(), "40");
  ASSERT_EQ(heard.cuts.size(), 1u);
  EXPECT_EQ(heard.cuts[0].kind, event::PublicCut::Kind::kLost);
  EXPECT_EQ(heard.cuts[0].offset, 40u);
}

TEST(KafkaSourceTest, ATopicMadeAnewUnderAReaderIsRefused) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker& broker = SharedBroker();
  const std::string topic = FreshName("anew");
  broker.CreateTopic(topic, 1);
  Write(broker, topic, 0, 0, 20);
  const auto source = Open(Options(broker, topic));
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 20);
  broker.DeleteTopic(topic);
  const Status gone = PollUntil(*source, &heard, [&] { return !source->health().connected; });
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_THAT(source->health().alert, HasSubstr(topic));
  broker.CreateTopic(topic, 1);
  Write(broker, topic, 0, 1000, 50);
  const Status refused = PollUntil(*source, &heard, [] { return false; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused) << refused.error().message;
  EXPECT_EQ(heard.records, 20u);
}

// Killed, then stopped in mid-air with its connections open: each time it is read again after its
// return, and nothing is missing or there twice.
TEST(KafkaSourceTest, ABrokerThatReturnsIsReadAgain) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker broker;
  broker.CreateTopic("t", 2);
  const auto source = Open(Options(broker, "t"));
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  int written = 0;
  const auto write = [&] {
    for (int32_t p = 0; p < 2; ++p) Write(broker, "t", p, written, 50);
    written += 50;
  };
  write();
  PollRecords(*source, &heard, 100);
  for (const bool kill : {true, false}) {
    SCOPED_TRACE(kill ? "killed" : "suspended");
    kill ? broker.Kill() : broker.Suspend();
    const Status gone = PollUntil(*source, &heard, [&] { return !source->health().connected; });
    ASSERT_TRUE(gone) << gone.error().message;
    kill ? broker.Start() : broker.Continue();
    const Status back = PollUntil(*source, &heard, [&] { return source->health().connected; });
    ASSERT_TRUE(back) << back.error().message;
    write();
    PollRecords(*source, &heard, static_cast<size_t>(written) * 2);
  }
  for (int32_t p = 0; p < 2; ++p)
    for (int i = 0; i < written; ++i)
      ASSERT_EQ(heard.values[p][static_cast<size_t>(i)], std::to_string(i));
}

TEST(KafkaSourceTest, WhoIsNotLetInIsToldSoAtTheStart) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker broker({.secure = true});
  broker.CreateTopic("t", 1);
  auto options = Options(broker, "t");
  options.properties.values = {
      {"bootstrap.servers", broker.sasl_tls()}, {"group.id", "t"},
      {"security.protocol", "sasl_ssl"},        {"sasl.mechanism", "SCRAM-SHA-512"},
      {"ssl.ca.location", broker.ca_file()},    {"sasl.username", broker.user()},
      {"sasl.password", "wrong-as-can-be"}};
  const Status refused = Open(options)->Seek({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << refused.error().message;
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("topic 't'"), HasSubstr("the brokers refuse a client"),
                    testing::Not(HasSubstr("wrong-as-can-be"))));
  std::string password = ReadFile(broker.password_file());
  while (!password.empty() && password.back() == '\n') password.pop_back();
  options.properties.values.back().second = password;
  const Status let_in = Open(options)->Seek({});
  EXPECT_TRUE(let_in) << let_in.error().message;
}

}  // namespace
}  // namespace tacit::test
