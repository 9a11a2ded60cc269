#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "feed/record.h"
#include "feed/version_end.h"
#include "stream/kafka/topic_reader.h"

namespace tacit::feed {

// A version end as it lies in a topic.
struct PlacedEnd {
  VersionEnd end;
  RecordOrigin origin;
  uint64_t offset = 0;
};

// A publisher has to know this of a topic.
struct NewestEnds {
  uint32_t partitions = 0;
  std::map<int32_t, PlacedEnd> by_partition;  // the newest of each partition that has one
  bool has_records = false;
};

// Decodes a record of a topic. Errors name topic, partition and offset.
Result<Record> DecodeTopicRecord(const std::string& topic, const stream::KafkaTopicRecord& record);
// The version end that such a record holds. REQUIRES one of that kind.
Result<PlacedEnd> DecodeTopicEnd(const std::string& topic, const stream::KafkaTopicRecord& record,
                                 const Record& decoded);

// Reads the ends of a topic's partitions, and no more of them than it takes. kUnavailable: no
// broker has answered in time. kNotFound: there is no such topic. kCorruption, kRefused: a record
// there is no feed's, or one of a newer format.
Result<NewestEnds> ReadNewestEnds(const stream::KafkaProperties& properties,
                                  const std::string& topic, std::chrono::milliseconds timeout);

// kRefused: the topic would lose rows, because it is not compacted, or not only. A broker that
// cannot be asked gets a warning. kUnavailable and kNotFound as above.
Status CheckCompacted(const stream::KafkaProperties& properties, const std::string& topic,
                      std::chrono::milliseconds timeout);

}  // namespace tacit::feed
