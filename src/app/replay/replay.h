#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/replay/line_fields.h"
#include "app/replay/mark.h"
#include "base/clock.h"
#include "base/result.h"
#include "stream/kafka_producer.h"

namespace tacit::app {

struct ReplayOptions {
  stream::KafkaProperties properties = {};
  std::string topic;
  std::string key;     // as written; for the marks
  double rate = 0;     // lines a second; 0: as fast as it goes
  double speed = 0;    // times real time; 0: as fast as it goes
  bool again = false;  // from the first line, whatever the topic has of the log already
  std::string frame;   // put before each value
  uint32_t max_record_bytes = 1 << 20;
};

struct ReplaySummary {
  int32_t partitions = 0;
  uint64_t lines = 0;          // looked at
  uint64_t sent = 0;           // acknowledged by the broker
  uint64_t already_there = 0;  // from a replay before this one
  uint64_t not_sent = 0;       // that cannot be: too long, behind damage to a file
  uint64_t bytes = 0;          // of the values sent
  double seconds = 0;
  bool complete = false;  // otherwise stopped; the same command goes on from there
};

// How far it is, for whoever watches.
struct ReplayView {
  double share = 0;
  uint64_t sent = 0, already_there = 0;
  std::string trouble;  // why nothing gets through, if so
};

// Sends the lines of log files to a topic, each once: a replay that was cut off, at whatever point,
// goes on behind the last line that each partition holds. So it is as long as the last 1,000
// records of each partition hold one of its own, and the topic keeps its number of partitions.
//
// `watch` is called now and then, and stops the replay by returning false.
// kInvalidArgument, kNotFound, kIo: it could not begin, or could not go on.
Result<ReplaySummary> Replay(const ReplayOptions& options, const std::vector<ReplayFile>& files,
                             LineFields& fields, const Clock& clock,
                             const std::function<bool(const ReplayView&)>& watch);

}  // namespace tacit::app
