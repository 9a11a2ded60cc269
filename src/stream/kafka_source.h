#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "event/envelope.h"
#include "metrics/registry.h"
#include "stream/kafka_properties.h"
#include "stream/source.h"

namespace tacit::stream {

struct KafkaSourceOptions {
  KafkaProperties properties;  // with a group.id: for commits that others can see
  std::string topic;
  uint32_t max_record_bytes = 1 << 20;  // a longer message is a faulty record
  // A mark this often, in partitions where something has come since the last one; 0: none.
  std::chrono::milliseconds tick{0};
  // Where retention has taken what was to be read: goes on behind it, with a mark, or refuses.
  bool go_on_when_lost = false;
  // Ends once everything there is has been read.
  bool until_end = false;
  // How long Seek waits for brokers that are out of reach before it leaves the rest to Poll.
  std::chrono::milliseconds open_timeout{10'000};
  // How often the brokers are asked for new partitions, and whether they are there at all.
  std::chrono::milliseconds refresh{5'000};
  std::chrono::milliseconds advise{1'000};  // least time between two commits for the group
  const Clock* clock = nullptr;             // null: the system's
  metrics::Registry* metrics = nullptr;     // must outlive the source; null: none
};

// A topic of Kafka, read partition by partition from the offsets it is told, through assign(): no
// group decides who reads what, and offsets committed for the group are for others to look at. A
// frame is a run of consecutive offsets; where offsets are missing (marks of transactions, what
// compaction took) another one begins. What cannot be delivered (a null value, one that is too
// long, one that `envelope` refuses) is a faulty record; where the envelope has to wait, so does
// the partition, alone. `envelope` may be null: then values are payloads.
//
// Brokers that are out of reach are no failure: Poll has nothing until they are back, and then the
// topic is held against what was read of it before anything more is taken from it. Poll fails for
// good when the topic is another one, has lost records that were to be read, or belongs to another
// store by what is committed for the group.
//
// kInvalidArgument for settings that are refused; no broker is asked yet.
Result<std::unique_ptr<Source>> OpenKafkaSource(KafkaSourceOptions options,
                                                std::unique_ptr<event::Envelope> envelope);

}  // namespace tacit::stream
