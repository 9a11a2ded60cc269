#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// The contents of a topic, written and read by bare librdkafka: nothing of the product is in
// between.
namespace tacit::test {

struct TopicRecord {
  int32_t partition = -1;  // written with -1: by the key
  int64_t offset = -1;     // as read
  std::optional<std::string> key = {}, value = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  int64_t timestamp_ms = 0;  // written with 0: now

  // The value of the first header of that name, or "".
  std::string Header(const std::string& name) const;
};

// Further librdkafka properties of the client, {"security.protocol", "ssl"} say.
using ClientProperties = std::vector<std::pair<std::string, std::string>>;

// Writes them in order, acked by the broker; a failure is one of the test.
void WriteTopic(const std::string& bootstrap, const std::string& topic,
                std::span<const TopicRecord> records, const ClientProperties& properties = {});

// All records that are in it, a partition after the other; of transactions, those that were
// committed. Waits up to `timeout` for what the broker said is there; a failure is one of the test.
std::vector<TopicRecord> ReadTopic(const std::string& bootstrap, const std::string& topic,
                                   const ClientProperties& properties = {},
                                   std::chrono::milliseconds timeout = std::chrono::seconds(60));

// Partitions with a leader, as the broker reports; 0 for a topic that is not there.
int32_t TopicPartitions(const std::string& bootstrap, const std::string& topic);

// Offsets in all partitions now, with records or without; -1 where the broker does not answer.
int64_t TopicSize(const std::string& bootstrap, const std::string& topic);

// The offset and metadata that a group has committed for a partition; nothing when it has not.
struct CommittedOffset {
  int64_t offset = 0;
  std::string metadata;
};
std::optional<CommittedOffset> ReadCommitted(const std::string& bootstrap, const std::string& group,
                                             const std::string& topic, int32_t partition);

}  // namespace tacit::test
