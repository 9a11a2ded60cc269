#include "system/kafka/topic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "support/eventually.h"
#include "system/kafka/clients.h"

namespace tacit::test {
namespace {

constexpr int kAnswerMs = std::chrono::milliseconds(kPatience).count();
constexpr int kDeliveryMs = 120'000;  // a broker that was killed may be a minute in starting

struct ListDeleter {
  void operator()(rd_kafka_topic_partition_list_t* list) const {
    rd_kafka_topic_partition_list_destroy(list);
  }
};
using PartitionList = std::unique_ptr<rd_kafka_topic_partition_list_t, ListDeleter>;
struct MessageDeleter {
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
};
using Message = std::unique_ptr<rd_kafka_message_t, MessageDeleter>;

int32_t PartitionsOf(rd_kafka_t* client, const std::string& topic) {
  rd_kafka_topic_t* handle = rd_kafka_topic_new(client, topic.c_str(), nullptr);
  const rd_kafka_metadata_t* metadata = nullptr;
  int32_t partitions = 0;
  if (rd_kafka_metadata(client, 0, handle, &metadata, kAnswerMs) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const rd_kafka_metadata_topic_t& found = metadata->topics[0];
    for (int p = 0; p < found.partition_cnt; ++p)
      if (found.partitions[p].err == RD_KAFKA_RESP_ERR_NO_ERROR) ++partitions;
    rd_kafka_metadata_destroy(metadata);
  }
  rd_kafka_topic_destroy(handle);
  return partitions;
}

void Delivered(rd_kafka_t*, const rd_kafka_message_t* message, void* failures) {
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
    *static_cast<std::string*>(failures) += std::string(rd_kafka_err2str(message->err)) + "; ";
}

rd_kafka_resp_err_t WriteOne(rd_kafka_t* client, const std::string& topic,
                             const TopicRecord& record) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(record.headers.size());
  for (const auto& [name, value] : record.headers)
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  const auto bytes = [](const std::optional<std::string>& text) {
    return text ? const_cast<char*>(text->data()) : nullptr;
  };
  const auto size = [](const std::optional<std::string>& text) { return text ? text->size() : 0; };
  const auto error = rd_kafka_producev(
      client, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(record.partition),
      RD_KAFKA_V_KEY(bytes(record.key), size(record.key)),
      RD_KAFKA_V_VALUE(bytes(record.value), size(record.value)),
      RD_KAFKA_V_TIMESTAMP(record.timestamp_ms), RD_KAFKA_V_HEADERS(headers),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK), RD_KAFKA_V_END);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) rd_kafka_headers_destroy(headers);
  return error;
}

TopicRecord ToRecord(const rd_kafka_message_t& message) {
  TopicRecord record;
  record.partition = message.partition;
  record.offset = message.offset;
  if (message.key != nullptr)
    record.key = std::string(static_cast<const char*>(message.key), message.key_len);
  if (message.payload != nullptr)
    record.value = std::string(static_cast<const char*>(message.payload), message.len);
  record.timestamp_ms = rd_kafka_message_timestamp(&message, nullptr);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    for (size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i)
      record.headers.emplace_back(name, std::string(static_cast<const char*>(value), size));
  }
  return record;
}

// Offsets of a partition, [low, high). Not all of them have records: some are markers of
// transactions, of aborted ones, or were compacted away.
struct Extent {
  int64_t low = 0, high = 0;
};
std::vector<Extent> ExtentsOf(rd_kafka_t* client, const std::string& topic) {
  const int32_t partitions = PartitionsOf(client, topic);
  EXPECT_GT(partitions, 0) << "the broker does not tell of topic " << topic;
  std::vector<Extent> extents(static_cast<size_t>(partitions));
  for (size_t p = 0; p < extents.size(); ++p) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kAnswerMs);
    rd_kafka_resp_err_t error;
    do {
      error = rd_kafka_query_watermark_offsets(client, topic.c_str(), static_cast<int32_t>(p),
                                               &extents[p].low, &extents[p].high, kAnswerMs);
      // A broker that has just begun to lead a partition says so before it does.
    } while (error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION &&
             std::chrono::steady_clock::now() < deadline);
    EXPECT_EQ(error, RD_KAFKA_RESP_ERR_NO_ERROR) << topic << ": " << rd_kafka_err2str(error);
  }
  return extents;
}

}  // namespace

Client MakeClient(rd_kafka_type_t type, const std::string& bootstrap,
                  const std::vector<std::pair<std::string, std::string>>& properties,
                  rd_kafka_conf_t* conf) {
  if (conf == nullptr) conf = rd_kafka_conf_new();
  char why[512];
  std::vector<std::pair<std::string, std::string>> all{{"bootstrap.servers", bootstrap},
                                                       {"log_level", "2"}};
  all.insert(all.end(), properties.begin(), properties.end());
  for (const auto& [name, value] : all) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why, sizeof(why)) !=
        RD_KAFKA_CONF_OK) {
      ADD_FAILURE() << name << ": " << why;
      rd_kafka_conf_destroy(conf);
      return nullptr;
    }
  }
  Client client(rd_kafka_new(type, conf, why, sizeof(why)));
  if (!client) {
    rd_kafka_conf_destroy(conf);
    ADD_FAILURE() << "no Kafka client: " << why;
  }
  return client;
}

std::string TopicRecord::Header(const std::string& name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return "";
}

void WriteTopic(const std::string& bootstrap, const std::string& topic,
                std::span<const TopicRecord> records, const ClientProperties& properties) {
  ClientProperties all{{"enable.idempotence", "true"},
                       {"linger.ms", "5"},
                       {"partitioner", "murmur2_random"},
                       {"message.max.bytes", "16000000"},
                       {"message.timeout.ms", std::to_string(kDeliveryMs)}};
  all.insert(all.end(), properties.begin(), properties.end());
  std::string failures;
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_dr_msg_cb(conf, Delivered);
  rd_kafka_conf_set_opaque(conf, &failures);
  const Client client = MakeClient(RD_KAFKA_PRODUCER, bootstrap, all, conf);
  if (!client) return;
  for (const TopicRecord& record : records) {
    const auto error = WriteOne(client.get(), topic, record);
    ASSERT_EQ(error, RD_KAFKA_RESP_ERR_NO_ERROR) << topic << ": " << rd_kafka_err2str(error);
    rd_kafka_poll(client.get(), 0);
  }
  // Until then each message is there, or `failures` says why not.
  EXPECT_EQ(rd_kafka_flush(client.get(), kDeliveryMs + kAnswerMs), RD_KAFKA_RESP_ERR_NO_ERROR)
      << topic;
  EXPECT_EQ(failures, "") << topic;
}

std::vector<TopicRecord> ReadTopic(const std::string& bootstrap, const std::string& topic,
                                   const ClientProperties& properties,
                                   std::chrono::milliseconds timeout) {
  ClientProperties all{{"group.id", "the-tests-own"},
                       {"enable.auto.commit", "false"},
                       {"auto.offset.reset", "error"},
                       {"enable.partition.eof", "true"},
                       {"check.crcs", "true"}};
  all.insert(all.end(), properties.begin(), properties.end());
  std::vector<TopicRecord> records;
  const Client client = MakeClient(RD_KAFKA_CONSUMER, bootstrap, all);
  if (!client) return records;
  rd_kafka_poll_set_consumer(client.get());
  const std::vector<Extent> extents = ExtentsOf(client.get(), topic);
  const PartitionList assigned(rd_kafka_topic_partition_list_new(1));
  std::vector<bool> ended(extents.size());
  for (size_t p = 0; p < extents.size(); ++p) {
    rd_kafka_topic_partition_list_add(assigned.get(), topic.c_str(), static_cast<int32_t>(p))
        ->offset = extents[p].low;
    ended[p] = extents[p].low == extents[p].high;
  }
  const auto all_ended = [&] { return std::ranges::find(ended, false) == ended.end(); };
  rd_kafka_assign(client.get(), assigned.get());
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string trouble;
  while (!all_ended() && std::chrono::steady_clock::now() < deadline) {
    const Message message(rd_kafka_consumer_poll(client.get(), 100));
    if (!message) continue;
    const auto partition = static_cast<size_t>(message->partition);
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      ended[partition] = true;
      continue;
    }
    // A broker whose cleaner takes a segment away may fail to read it; librdkafka asks again.
    if (message->err == RD_KAFKA_RESP_ERR_UNKNOWN ||
        message->err == RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR) {
      trouble = rd_kafka_message_errstr(message.get());
      continue;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      ADD_FAILURE() << topic << ": " << rd_kafka_message_errstr(message.get());
      break;
    }
    if (message->offset + 1 >= extents[partition].high) ended[partition] = true;
    if (message->offset < extents[partition].high) records.push_back(ToRecord(*message));
  }
  EXPECT_TRUE(all_ended()) << topic << " was not read to its end; " << trouble;
  std::stable_sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::tie(a.partition, a.offset) < std::tie(b.partition, b.offset);
  });
  return records;
}

int32_t TopicPartitions(const std::string& bootstrap, const std::string& topic) {
  const Client client = MakeClient(RD_KAFKA_PRODUCER, bootstrap, {});
  return client ? PartitionsOf(client.get(), topic) : 0;
}

int64_t TopicSize(const std::string& bootstrap, const std::string& topic) {
  const Client client = MakeClient(RD_KAFKA_PRODUCER, bootstrap, {});
  if (!client || PartitionsOf(client.get(), topic) == 0) return -1;
  int64_t size = 0;
  for (const Extent& extent : ExtentsOf(client.get(), topic)) size += extent.high - extent.low;
  return size;
}

std::optional<CommittedOffset> ReadCommitted(const std::string& bootstrap, const std::string& group,
                                             const std::string& topic, int32_t partition) {
  const Client client = MakeClient(RD_KAFKA_CONSUMER, bootstrap, {{"group.id", group}});
  if (!client) return std::nullopt;
  const PartitionList asked(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(asked.get(), topic.c_str(), partition);
  const auto error = rd_kafka_committed(client.get(), asked.get(), kAnswerMs);
  EXPECT_EQ(error, RD_KAFKA_RESP_ERR_NO_ERROR) << rd_kafka_err2str(error);
  const rd_kafka_topic_partition_t& found = asked->elems[0];
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR || found.offset < 0) return std::nullopt;
  return CommittedOffset{
      found.offset, std::string(static_cast<const char*>(found.metadata), found.metadata_size)};
}

}  // namespace tacit::test
