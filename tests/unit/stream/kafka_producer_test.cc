#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include "stream/kafka/producer.h"
// After rdkafka.h, which it needs.
#include <librdkafka/rdkafka_mock.h>

#include <map>
#include <set>

#include "stream/kafka/client.h"
#include "stream/kafka/topic_reader.h"
#include "support/eventually.h"

namespace tacit::stream {
namespace {

using std::chrono::milliseconds;
using test::kPatience;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// librdkafka's mock broker, in a client of its own.
class MockBroker {
 public:
  explicit MockBroker(int partitions) {
    char why[512];
    client_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof(why)));
    cluster_.reset(rd_kafka_mock_cluster_new(client_.get(), 1));
    rd_kafka_mock_topic_create(cluster_.get(), "t", partitions, 1);
  }
  KafkaProperties properties() const {
    return {{{"bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster_.get())}}};
  }
  rd_kafka_mock_cluster_t* get() { return cluster_.get(); }

 private:
  KafkaClient client_;
  std::unique_ptr<rd_kafka_mock_cluster_t, KafkaDeleter<rd_kafka_mock_cluster_destroy>> cluster_;
};

std::unique_ptr<KafkaProducer> OpenProducer(KafkaProducerOptions options) {
  options.topic = "t";
  auto producer = KafkaProducer::Open(std::move(options));
  EXPECT_TRUE(producer) << producer.error().message;
  return producer ? std::move(*producer) : nullptr;
}

// Apache Kafka's own, org.apache.kafka.common.utils.UtilsTest.testMurmur2, without the sign.
TEST(KafkaProducerTest, AKeyHasThePartitionThatJavaGivesIt) {
  const std::map<std::string, int32_t> java = {
      {"21", -973932308},
      {"foobar", -790332482},
      {"a-little-bit-long-string", -985981536},
      {"a-little-bit-longer-string", -1486304829},
      {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
      {"abc", 479470107}};
  for (const auto& [key, hash] : java) {
    for (const int32_t partitions : {1, 3, 8, 1000})
      EXPECT_EQ(KafkaProducer::PartitionOfKey(key, partitions), (hash & 0x7fffffff) % partitions)
          << key;
  }
}

TEST(KafkaProducerTest, WritesKeysValuesAndHeadersWhereTheyWereSent) {
  MockBroker broker(3);
  const auto producer = OpenProducer({.properties = broker.properties()});
  const auto partitions = producer->CountPartitions(kPatience);
  ASSERT_TRUE(partitions) << partitions.error().message;
  EXPECT_EQ(*partitions, 3);
  for (uint64_t i = 0; i < 300; ++i) {
    const std::string number = std::to_string(i);
    const event::MessageHeader headers[] = {{"n", number}, {"empty", ""}};
    ASSERT_TRUE(producer->Send({.partition = static_cast<int32_t>(i % 3),
                                .key = number,
                                .value = std::string_view(),
                                .headers = headers},
                               kPatience));
  }
  ASSERT_TRUE(producer->Flush(kPatience));
  EXPECT_EQ(producer->records_acked(), 300u);
  EXPECT_EQ(producer->records_waiting(), 0u);
  EXPECT_TRUE(producer->TakeFailures().empty());

  std::map<int32_t, std::vector<std::string>> tails;
  const Status read = ReadKafkaTail(broker.properties(), "t", 2, kPatience,
                                    [&](const KafkaTopicRecord& record) -> Status {
                                      EXPECT_EQ(record.headers.size(), 2u);
                                      if (record.headers.size() != 2) return {};
                                      EXPECT_EQ(record.headers[1].name, "empty");
                                      EXPECT_EQ(record.headers[1].value, "");
                                      EXPECT_EQ(record.key, record.headers[0].value);
                                      EXPECT_EQ(record.value, "");
                                      tails[record.partition].emplace_back(record.headers[0].value);
                                      return {};
                                    });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(tails[0], ElementsAre("294", "297"));
  EXPECT_THAT(tails[1], ElementsAre("295", "298"));
  EXPECT_THAT(tails[2], ElementsAre("296", "299"));
}

TEST(KafkaProducerTest, AKeyedRecordGoesToItsKeysPartition) {
  MockBroker broker(8);
  const auto producer = OpenProducer({.properties = broker.properties()});
  std::map<std::string, int32_t> expected;
  for (int i = 0; i < 100; ++i) {
    const std::string key = "user-" + std::to_string(i);
    expected[key] = KafkaProducer::PartitionOfKey(key, 8);
    const event::MessageHeader header[] = {{"key", key}};
    ASSERT_TRUE(producer->Send({.key = key, .value = "v", .headers = header}, kPatience));
  }
  ASSERT_TRUE(producer->Flush(kPatience));
  size_t seen = 0;
  ASSERT_TRUE(ReadKafkaTail(
      broker.properties(), "t", 1000, kPatience, [&](const KafkaTopicRecord& record) -> Status {
        EXPECT_EQ(record.partition, expected.at(std::string(record.headers[0].value)));
        ++seen;
        return {};
      }));
  EXPECT_EQ(seen, expected.size());
}

TEST(KafkaProducerTest, BrokersThatFailForATimeCostNothing) {
  MockBroker broker(1);
  const auto producer = OpenProducer({.properties = broker.properties()});
  constexpr int16_t kProduce = 0;
  rd_kafka_mock_push_request_errors(
      broker.get(), kProduce, 3, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
      RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(producer->Send({.partition = 0, .value = "v"}, kPatience));
  ASSERT_TRUE(producer->Flush(kPatience));
  EXPECT_EQ(producer->records_acked(), 10u);
}

TEST(KafkaProducerTest, WhereNoBrokerIsTheQueueFillsAndThenHoldsBack) {
  const auto producer = OpenProducer({.properties = {{{"bootstrap.servers", "127.0.0.1:1"}}},
                                      .queued_bytes_max = 64 << 10,
                                      .record_bytes_max = 10000});
  const std::string value(1000, 'x');
  Status sent;
  int taken = 0;
  while (sent && taken < 1000) {
    sent = producer->Send({.partition = 0, .value = value}, milliseconds(300));
    taken += sent ? 1 : 0;
  }
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(sent.error().message, HasSubstr("topic 't'"));
  EXPECT_GT(taken, 30);
  EXPECT_LT(taken, 70);
  const Status flushed = producer->Flush(milliseconds(200));
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(test::Eventually("it says what is wrong", [&] {
    producer->Wait(milliseconds(10));
    return producer->trouble() == "no broker answers";
  })) << producer->trouble();
  EXPECT_EQ(producer->CountPartitions(milliseconds(100)).error().code, ErrorCode::kUnavailable);
}

TEST(KafkaProducerTest, ARecordTooLargeFailsByItsTagAndTheOthersGo) {
  MockBroker broker(1);
  const auto producer =
      OpenProducer({.properties = broker.properties(), .record_bytes_max = 10000});
  const std::string large(100000, 'x');
  ASSERT_TRUE(producer->Send({.partition = 0, .value = "a", .tag = 1}, kPatience));
  ASSERT_TRUE(producer->Send({.partition = 0, .value = large, .tag = 2}, kPatience));
  ASSERT_TRUE(producer->Send({.partition = 0, .value = "b", .tag = 3}, kPatience));
  ASSERT_TRUE(producer->Flush(kPatience));
  EXPECT_EQ(producer->records_acked(), 2u);
  const std::vector<FailedDelivery> failures = producer->TakeFailures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].tag, 2u);
  EXPECT_TRUE(failures[0].too_large);
  EXPECT_THAT(failures[0].reason, HasSubstr("topic 't'"));
}

TEST(KafkaProducerTest, WhatWouldTakeAwayAGuaranteeIsRefused) {
  for (const auto& [name, value] : {std::pair{"enable.idempotence", "false"},
                                    {"acks", "1"},
                                    {"message.timeout.ms", "1000"},
                                    {"delivery.timeout.ms", "1000"},
                                    {"request.required.acks", "0"}}) {
    const auto refused = KafkaProducer::Open({.properties = {{{name, value}}}, .topic = "t"});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr(std::string("kafka.") + name), HasSubstr("must be")));
  }
  EXPECT_TRUE(
      KafkaProducer::Open({.properties = {{{"acks", "-1"}, {"linger.ms", "50"}}}, .topic = "t"}));
}

}  // namespace
}  // namespace tacit::stream
