#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/brokers/subject.h"
#include "support/eventually.h"
#include "system/kafka/clients.h"
#include "system/kafka/topic.h"

namespace tacit::test {

inline constexpr int kLongMs = std::chrono::milliseconds(kPatience).count();

template <auto kDestroy>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    kDestroy(object);
  }
};
using BareList =
    std::unique_ptr<rd_kafka_topic_partition_list_t, Freed<rd_kafka_topic_partition_list_destroy>>;
using BareMessage = std::unique_ptr<rd_kafka_message_t, Freed<rd_kafka_message_destroy>>;
using BareQueue = std::unique_ptr<rd_kafka_queue_t, Freed<rd_kafka_queue_destroy>>;

// A test of the contract, with a topic of its own.
class BrokersContract : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = subject::Missing();
    if (!missing.empty() && subject::Required()) FAIL() << "TACIT_REQUIRE has kafka: " << missing;
    if (!missing.empty()) GTEST_SKIP() << missing;
    topic_ = subject::NewName("contract");
  }
  void Create(int32_t partitions,
              const std::vector<std::pair<std::string, std::string>>& settings = {}) {
    subject::CreateTopic(topic_, partitions, settings);
  }
  Client Consumer(ClientProperties more = {}) const {
    ClientProperties all{{"group.id", topic_},
                         {"enable.auto.commit", "false"},
                         {"auto.offset.reset", "error"},
                         {"enable.partition.eof", "true"},
                         {"fetch.wait.max.ms", "50"}};
    all.insert(all.end(), more.begin(), more.end());
    Client client = MakeClient(RD_KAFKA_CONSUMER, subject::Bootstrap(), all);
    rd_kafka_poll_set_consumer(client.get());
    return client;
  }
  Client Producer(ClientProperties more = {}) const {
    ClientProperties all{{"linger.ms", "0"}};
    all.insert(all.end(), more.begin(), more.end());
    return MakeClient(RD_KAFKA_PRODUCER, subject::Bootstrap(), all);
  }
  // The producer of this name, ready to begin.
  Client Transactional(const std::string& name, ClientProperties more = {}) const {
    more.emplace_back("transactional.id", name);
    Client client = Producer(more);
    ExpectNone(rd_kafka_init_transactions(client.get(), kLongMs));
    return client;
  }
  static rd_kafka_resp_err_t CodeOf(rd_kafka_error_t* error) {
    const rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    if (error != nullptr) rd_kafka_error_destroy(error);
    return code;
  }
  static void ExpectNone(rd_kafka_error_t* error) {
    if (error == nullptr) return;
    ADD_FAILURE() << rd_kafka_error_string(error);
    rd_kafka_error_destroy(error);
  }
  BareList ListOf(const std::vector<std::pair<int32_t, int64_t>>& offsets) const {
    BareList list(rd_kafka_topic_partition_list_new(1));
    for (const auto& [partition, offset] : offsets)
      rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition)->offset = offset;
    return list;
  }
  // Hands a value over to the producer.
  rd_kafka_resp_err_t Produce(const Client& client, int32_t partition, const std::string& value,
                              void* tag = nullptr, int64_t timestamp_ms = 0) const {
    return rd_kafka_producev(client.get(), RD_KAFKA_V_TOPIC(topic_.c_str()),
                             RD_KAFKA_V_PARTITION(partition),
                             RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
                             RD_KAFKA_V_TIMESTAMP(timestamp_ms), RD_KAFKA_V_OPAQUE(tag),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
  }
  void ProduceNow(const Client& client, int32_t partition, const std::string& value) const {
    ASSERT_EQ(Produce(client, partition, value), RD_KAFKA_RESP_ERR_NO_ERROR);
    ASSERT_EQ(rd_kafka_flush(client.get(), kLongMs), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void Write(int32_t partition, const std::vector<std::string>& values) const {
    std::vector<TopicRecord> records;
    for (const std::string& value : values)
      records.push_back({.partition = partition, .value = value});
    WriteTopic(subject::Bootstrap(), topic_, records);
  }
  std::vector<TopicRecord> Read(const ClientProperties& properties = {}) const {
    return ReadTopic(subject::Bootstrap(), topic_, properties);
  }
  // The values with their offsets, "0:a".
  static std::vector<std::string> Shown(const std::vector<TopicRecord>& records) {
    std::vector<std::string> shown;
    for (const TopicRecord& record : records)
      shown.push_back(std::to_string(record.offset) + ":" + record.value.value_or("-"));
    return shown;
  }
  // The first and the last offset of a partition as the brokers tell them, or the error's number.
  std::pair<int64_t, int64_t> Span(const Client& client, int32_t partition) const {
    int64_t low = -7, high = -7;
    const auto error = rd_kafka_query_watermark_offsets(client.get(), topic_.c_str(), partition,
                                                        &low, &high, kLongMs);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return {error, error};
    return {low, high};
  }
  // Asks the leaders to delete; returns false if they refuse.
  bool DeleteBefore(const std::vector<std::pair<int32_t, int64_t>>& offsets) const {
    const Client client = Producer();
    rd_kafka_DeleteRecords_t* request = rd_kafka_DeleteRecords_new(ListOf(offsets).get());
    rd_kafka_AdminOptions_t* const options =
        rd_kafka_AdminOptions_new(client.get(), RD_KAFKA_ADMIN_OP_DELETERECORDS);
    rd_kafka_AdminOptions_set_request_timeout(options, kLongMs, nullptr, 0);
    const BareQueue queue(rd_kafka_queue_new(client.get()));
    rd_kafka_DeleteRecords(client.get(), &request, 1, options, queue.get());
    rd_kafka_event_t* const event = rd_kafka_queue_poll(queue.get(), kLongMs);
    rd_kafka_DeleteRecords_destroy(request);
    rd_kafka_AdminOptions_destroy(options);
    if (event == nullptr) return false;
    bool deleted = rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR;
    const auto* list =
        rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
    for (int i = 0; deleted && i < list->cnt; ++i)
      deleted = list->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_event_destroy(event);
    return deleted;
  }
  // A broker answers before it has written the markers of a transaction.
  void AwaitEnd(const Client& client, int32_t partition, int64_t end) const {
    EXPECT_TRUE(Eventually("the partition ends at " + std::to_string(end), [&] {
      return Span(client, partition).second == end;
    })) << Span(client, partition).second;
  }
  // The next message of a queue, as "VALUE@OFFSET" or "(ERROR)@OFFSET"; "" if none comes.
  static std::string Next(const Client& client, int timeout_ms = kLongMs) {
    return Shown(BareMessage(rd_kafka_consumer_poll(client.get(), timeout_ms)).get());
  }
  // Nothing comes for a while. A client that is right never fails here, however slow the machine
  // is.
  static void ExpectNothing(const Client& client, const std::string& why = "") {
    EXPECT_EQ(Next(client, 300), "") << why;
  }
  static std::string Next(const BareQueue& queue, int timeout_ms = kLongMs) {
    return Shown(BareMessage(rd_kafka_consume_queue(queue.get(), timeout_ms)).get());
  }
  static std::string Shown(const rd_kafka_message_t* message) {
    if (message == nullptr) return "";
    const std::string value =
        message->err == RD_KAFKA_RESP_ERR_NO_ERROR
            ? std::string(static_cast<const char*>(message->payload), message->len)
            : std::string("(") + rd_kafka_err2str(message->err) + ")";
    return value + "@" + std::to_string(message->offset);
  }

  std::string topic_;
};

inline constexpr char kEnd[] = "(Broker: No more messages)";

}  // namespace tacit::test
