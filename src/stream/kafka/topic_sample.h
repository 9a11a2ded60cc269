#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "stream/kafka/plan.h"
#include "stream/kafka/properties.h"
#include "stream/kafka/topic_reader.h"

// Looks at a topic without learning from it: no offset is committed, no group is joined, and the
// topic is neither made nor changed.
namespace tacit::stream {

// The brokers' answers about one topic.
struct KafkaTopicFacts {
  std::vector<PartitionSpan> partitions;  // ascending
  uint32_t replicas = 0, in_sync = 0;     // of the partition that has the fewest
  // The topic's settings that matter to a reader; a broker may not tell them.
  std::map<std::string, std::string> settings;
  std::string no_settings;  // the reason why there are none; if empty, they were told

  uint64_t retained() const;  // offsets in all partitions
  // The setting of that name; "" where it is not known.
  std::string Setting(const std::string& name) const;
};

// Asks until there is an answer or `timeout` has passed. kNotFound: there is no such topic.
// kUnavailable: no broker answers, or a partition has no leader; the message says which. kIo: the
// brokers refuse us. kInvalidArgument: a setting is wrong.
Result<KafkaTopicFacts> AskTopic(const KafkaProperties& properties, const std::string& topic,
                                 std::chrono::milliseconds timeout);

enum class KafkaSpread {
  kFirst,   // the offsets that are there longest
  kEvenly,  // short stretches from each partition's beginning to its end
};

// Chooses some `offsets_most` offsets of a topic, ascending in each partition. Each partition gives
// its share, by the offsets that it retains. Offsets alone decide, and so nothing that records
// hold.
std::vector<OffsetRange> ChooseStretches(std::span<const PartitionSpan> partitions,
                                         uint64_t offsets_most, KafkaSpread spread);

// Shows the records of these stretches, each partition's in the order of offsets. Views are valid
// during the call of `show`, whose failure ends reading. kUnavailable: nothing came for `patience`.
// kNotFound: records are gone by now.
Status ReadStretches(const KafkaProperties& properties, const std::string& topic,
                     std::span<const OffsetRange> stretches, std::chrono::milliseconds patience,
                     const KafkaTopicReader::Show& show);

}  // namespace tacit::stream
