#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "event/dead_letters.h"
#include "event/recent_offsets.h"
#include "stream/kafka/properties.h"

namespace tacit::stream {

struct DeadLetterTopicOptions {
  KafkaProperties properties = {};
  std::string topic = {};         // the topic of dead letters
  std::string source_topic = {};  // the topic of the original records
  std::string connector = {};     // the writer's name, for the header connector.name
  std::string lineage = {};       // lineage of the store whose offsets wait for them
  // Larger originals leave a letter without a value, or without anything of theirs.
  uint32_t record_bytes_max = 64 << 20;
  // The memory of letters that are written: older ones are written again if they come again.
  size_t blocks_most = event::RecentOffsets::kBlocksMost;
};

// A sink that writes dead letters to a topic in Kafka Connect's form: key, value, headers and time
// of the original record, which is fetched again from its topic, and the headers
// __connect.errors.topic, .partition, .offset, .connector.name, .task.id, .stage, .class.name,
// .exception.class.name and .exception.message. The topic holds raw events, as the input does:
// protect it as well.
//
// If the original is gone, or is too large for the topic, the letter has a null value and
// tacit.value.missing says why. If it is too large without its value too, the letter lacks its key
// and headers as well.
//
// A letter is written at least once. After a crash it may be written again, unless the last 10,000
// records of a partition contain it with the same lineage; topic, partition and offset show a
// reader which letters are the same. While the topic cannot be written to, Write waits.
//
// kNotFound: there is no such topic. kInvalidArgument: a setting is wrong. kIo: the brokers refuse
// us. A broker that does not answer is no failure: letters wait.
Result<std::unique_ptr<event::DeadLetterSink>> OpenDeadLetterTopic(DeadLetterTopicOptions options);

}  // namespace tacit::stream
