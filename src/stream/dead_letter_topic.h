#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "event/dead_letters.h"
#include "stream/kafka_properties.h"

namespace tacit::stream {

struct DeadLetterTopicOptions {
  KafkaProperties properties = {};
  std::string topic = {};         // where dead letters go
  std::string source_topic = {};  // where their records lie
  std::string connector = {};     // who writes them: the header connector.name
  std::string lineage = {};       // of the store whose offsets wait for them
  // Larger originals leave a letter without a value.
  uint32_t record_bytes_max = 64 << 20;
};

// Dead letters as records of a topic, as Kafka Connect writes them: key, value, headers and time of
// the original, which is fetched again from where it is, and the headers __connect.errors.topic,
// .partition, .offset, .connector.name, .task.id, .stage, .class.name, .exception.class.name and
// .exception.message. The topic holds raw events, as the input does: protect it likewise.
//
// Where the original is gone, or the topic will not have one so large, the letter has a null value,
// and tacit.value.missing says why.
//
// A letter is written at least once. After a crash one may be written again, but for those that the
// last 10,000 records of each partition show to be there, of the same lineage; topic, partition and
// offset tell a reader which are the same. While the topic cannot be written to, Write waits.
//
// kNotFound: there is no such topic. kInvalidArgument: a setting is wrong. kIo: the brokers will
// not have us. A broker that does not answer is none: letters wait.
Result<std::unique_ptr<event::DeadLetterSink>> OpenDeadLetterTopic(DeadLetterTopicOptions options);

}  // namespace tacit::stream
