#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "inspect/records.h"
#include "stream/kafka/topic_sample.h"

namespace tacit::inspect {

// A person's words about a topic.
struct TopicAsked {
  config::Kafka kafka = {};
  std::string topic = {};
  uint64_t rows_most = 200'000;  // offsets that are looked at
  stream::KafkaSpread spread = stream::KafkaSpread::kFirst;
  std::optional<bool> framed = {};  // nothing if it follows from the first records
  std::chrono::milliseconds wait = std::chrono::seconds(10);
  std::string registry = {};  // of a topic of framed Avro: its schema registry's URL
};

// A topic as it was found. The brokers' facts and the offsets are public; `raw` is not.
struct TopicFound {
  std::string topic;
  config::Kafka kafka;
  stream::KafkaTopicFacts facts = {};
  std::vector<OffsetRange> looked_at = {};
  stream::KafkaSpread spread = stream::KafkaSpread::kFirst;
  bool framed = false;
  std::string registry = {};     // as it was asked
  size_t record_bytes_most = 0;  // longer ones are not looked at

  struct Raw {
    uint64_t tombstones = 0, keyless = 0, records = 0;
    uint64_t appended = 0;           // with the broker's time
    int64_t from_ms = 0, to_ms = 0;  // 0: no record has a time
    // By schema of framed records: how many, and the place of the first.
    std::map<std::string, std::pair<uint64_t, std::string>> schemas;
  };
  Raw raw = {};
};

// Asks the brokers, and chooses what is looked at. Reads no record. Fails where the topic is not
// there, is empty, or cannot be read; the message says which.
Result<TopicFound> FindTopic(const TopicAsked& asked);

// Reads the records that were chosen and holds them, in the order in which the partitions'
// records came about: a partition's by offsets, and those of several by their times. A record that
// is longer than `record_bytes_most` has a fault in place of its text: that is a matter of its own.
Result<std::shared_ptr<const Records>> ReadTopic(const TopicAsked& asked, TopicFound found);

// Offsets that can be looked at, at most.
inline constexpr uint64_t kTopicRowsMost = 4'000'000;
// Bytes of one record, at most, so that `rows_most` of them can be held.
size_t TopicRecordBytesMost(uint64_t rows_most);

// The offsets that are looked at, for people: "partition 0: 0 to 4,999; ...".
std::string OffsetsText(const std::vector<OffsetRange>& stretches);

}  // namespace tacit::inspect
