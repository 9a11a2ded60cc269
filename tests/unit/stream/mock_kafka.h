#pragma once

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stream/kafka/client.h"
#include "support/eventually.h"

namespace tacit::stream {

// librdkafka's mock of a broker, within this process, and a producer that writes to it. It keeps
// 5 MiB of a partition, and forgets the oldest beyond.
class MockKafka {
 public:
  MockKafka() : client_(Make({})), cluster_(rd_kafka_mock_cluster_new(client_.get(), 1)) {
    producer_ = Make({{"bootstrap.servers", bootstrap()}, {"linger.ms", "0"}});
  }
  ~MockKafka() {
    producer_.reset();
    rd_kafka_mock_cluster_destroy(cluster_);
  }

  std::string bootstrap() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  rd_kafka_mock_cluster_t* cluster() { return cluster_; }

  void Create(const std::string& topic, int partitions) {
    ASSERT_EQ(rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  // Waits until it is written. No value: a tombstone.
  void Write(const std::string& topic, int32_t partition, std::optional<std::string> value,
             const std::vector<std::pair<std::string, std::string>>& headers = {}) {
    auto* list = rd_kafka_headers_new(headers.size());
    for (const auto& [name, header] : headers)
      rd_kafka_header_add(list, name.data(), static_cast<ssize_t>(name.size()), header.data(),
                          static_cast<ssize_t>(header.size()));
    const auto error = rd_kafka_producev(
        producer_.get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(partition),
        RD_KAFKA_V_VALUE((value ? value->data() : nullptr), (value ? value->size() : 0)),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADERS(list), RD_KAFKA_V_END);
    ASSERT_EQ(error, RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  // Writes a record with a key, and with a time if it is above 0.
  void WriteKeyed(const std::string& topic, int32_t partition, const std::string& key,
                  const std::string& value, int64_t timestamp_ms = 0) {
    while (true) {
      const auto error =
          rd_kafka_producev(producer_.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                            RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key.data(), key.size()),
                            RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
                            RD_KAFKA_V_TIMESTAMP(timestamp_ms),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
      if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        ASSERT_EQ(error, RD_KAFKA_RESP_ERR_NO_ERROR);
        return;
      }
      rd_kafka_poll(producer_.get(), 10);
    }
  }
  // The values "FIRST", "FIRST + 1", ... of this many records.
  void WriteNumbers(const std::string& topic, int32_t partition, int first, int count) {
    for (int i = first; i < first + count; ++i) Write(topic, partition, std::to_string(i));
    Flush();
  }
  void Flush() {
    constexpr std::chrono::milliseconds kLongest = test::kPatience;
    ASSERT_EQ(rd_kafka_flush(producer_.get(), static_cast<int>(kLongest.count())),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }

  // Answers the next fetches with an exception of the broker's own.
  void FailFetches(size_t count) {
    constexpr int16_t kFetch = 1;
    const std::vector<rd_kafka_resp_err_t> errors(count, RD_KAFKA_RESP_ERR_UNKNOWN);
    rd_kafka_mock_push_request_errors_array(cluster_, kFetch, count, errors.data());
  }
  // Refuses the next requests of idempotent producers to begin: they have failed for good.
  void FailProducerIds(size_t count) {
    constexpr int16_t kInitProducerId = 22;
    const std::vector<rd_kafka_resp_err_t> errors(count,
                                                  RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
    rd_kafka_mock_push_request_errors_array(cluster_, kInitProducerId, count, errors.data());
  }
  // Refuses requests to write until it does no more: their records fail.
  void FailWrites(bool fail) {
    constexpr int16_t kProduce = 0;
    rd_kafka_mock_clear_request_errors(cluster_, kProduce);
    const size_t count = fail ? 10'000 : 0;
    const std::vector<rd_kafka_resp_err_t> errors(count, RD_KAFKA_RESP_ERR_INVALID_RECORD);
    rd_kafka_mock_push_request_errors_array(cluster_, kProduce, count, errors.data());
  }
  void SetDown(bool down) {
    if (down) {
      rd_kafka_mock_broker_set_down(cluster_, -1);
    } else {
      rd_kafka_mock_broker_set_up(cluster_, -1);
    }
  }

 private:
  static KafkaClient Make(const std::vector<std::pair<std::string, std::string>>& settings) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    for (const auto& [name, value] : settings)
      rd_kafka_conf_set(conf, name.c_str(), value.c_str(), nullptr, 0);
    rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
    return KafkaClient(rd_kafka_new(RD_KAFKA_PRODUCER, conf, nullptr, 0));
  }

  KafkaClient client_;
  rd_kafka_mock_cluster_t* cluster_;
  KafkaClient producer_;
};

}  // namespace tacit::stream
