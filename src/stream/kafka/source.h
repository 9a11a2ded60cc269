#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "event/envelope.h"
#include "metrics/registry.h"
#include "stream/kafka/period_share.h"
#include "stream/kafka/properties.h"
#include "stream/source.h"

namespace tacit::stream {

struct KafkaSourceOptions {
  KafkaProperties properties;  // with a group.id, for commits that others can see
  std::string topic;
  uint32_t max_record_bytes = 1 << 20;  // a longer message is a faulty record
  // The interval at which the brokers are asked for the partitions' ends. Records of one answer are
  // ordered by their timestamps; those of the next come after them.
  std::chrono::milliseconds round{250};
  // The interval of clock ticks, in partitions where a record has come since the last one; 0: none.
  // A tick is at the partition's end at that time, however far it has been read.
  std::chrono::milliseconds tick{0};
  // If retention has taken records still to be read: continue after them, with a cut, or refuse.
  bool go_on_when_lost = false;
  // Ends the source once everything that existed when it was opened has been read.
  bool until_end = false;
  // The time that Seek waits for brokers that are out of reach before it leaves the opening to
  // Poll.
  std::chrono::milliseconds open_timeout{10'000};
  // The interval at which the brokers are asked for new partitions, which also tests the
  // connection.
  std::chrono::milliseconds refresh{5'000};
  std::chrono::milliseconds advise{1'000};  // least time between two commits for the group
  // Shares out the periods that the source cuts (SetPeriods), and must outlive it; if null, all of
  // their records are read here.
  PeriodShare* share = nullptr;
  const Clock* clock = nullptr;          // if null, the system's
  metrics::Registry* metrics = nullptr;  // must outlive the source; null if none
};

// Opens a topic of Kafka, read partition by partition from given offsets through assign(): no group
// decides who reads what, and offsets committed for the group are only for others to see. A frame
// is a run of consecutive offsets; where offsets are missing (markers of transactions, records that
// compaction took) another frame begins. A record that cannot be delivered (a null value, one that
// is too long, one that `envelope` refuses) is a faulty record.
// `envelope` may be null; then values are payloads.
//
// The next partition is a function of offsets, record timestamps, arrival at the brokers and the
// clock (docs/internals/stream.md, "The order over partitions"). So a partition keeps its turn
// while it waits, for a schema, for a broker or because it is paused, and the others wait with it.
//
// A topic that the brokers do not know is a failure where the source ends with what is there; else
// it is waited for: Seek returns after some seconds, and Poll begins once the topic is made.
//
// Brokers that are out of reach are no failure: Poll returns nothing until they are back, and the
// topic is then checked against what was read of it before more is read. Poll fails for good if the
// topic is another one, has lost records that were to be read, or belongs to another store
// according to the group's commits.
//
// kInvalidArgument: settings are refused. Asks no broker yet.
Result<std::unique_ptr<Source>> OpenKafkaSource(KafkaSourceOptions options,
                                                std::unique_ptr<event::Envelope> envelope);

}  // namespace tacit::stream
