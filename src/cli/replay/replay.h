#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/replay/line_fields.h"
#include "cli/replay/replay_header.h"
#include "stream/kafka/producer.h"

namespace tacit::cli {

struct ReplayOptions {
  stream::KafkaProperties properties = {};
  std::string topic;
  std::string key;     // as written; for the headers
  double rate = 0;     // lines a second; 0: as fast as it goes
  double speed = 0;    // times real time; 0: as fast as it goes
  bool again = false;  // from the first line, even of what the topic has of the log
  std::string frame;   // put before each value
  uint32_t max_record_bytes = 1 << 20;
};

struct ReplaySummary {
  int32_t partitions = 0;
  uint64_t lines = 0;          // looked at
  uint64_t sent = 0;           // acknowledged by the broker
  uint64_t already_there = 0;  // from a replay before this one
  uint64_t not_sent = 0;       // cannot be sent: too long, or after damage to a file
  uint64_t bytes = 0;          // of the values sent
  double seconds = 0;
  bool complete = false;  // else stopped: the same command resumes there
};

// The progress of a replay, for display.
struct ReplayView {
  double share = 0;
  uint64_t sent = 0, already_there = 0;
  std::string trouble;  // the reason why no record gets through; else empty
};

// Sends the lines of log files to a topic, each once: a replay that was interrupted at any point
// resumes after the last line in each partition. This requires that the last 1,000 records of each
// partition include one of the replay's, and that the topic keeps its number of partitions.
//
// Calls `watch` now and then, and stops when it returns false. kInvalidArgument, kNotFound, kIo:
// the replay could not begin, or could not go on. It goes on behind no packed file that is cut: the
// same command sends the rest once the file is whole.
Result<ReplaySummary> Replay(const ReplayOptions& options, const std::vector<ReplayFile>& files,
                             LineFields& fields, const Clock& clock,
                             const std::function<bool(const ReplayView&)>& watch);

}  // namespace tacit::cli
