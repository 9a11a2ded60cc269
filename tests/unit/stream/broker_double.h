#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "stream/kafka/fetcher.h"
#include "stream/kafka/rounds.h"

namespace tacit::stream {

using std::chrono::milliseconds;

// A clock that moves when the test moves it.
class SetClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(std::chrono::hours(1)) + milliseconds(ms_); }
  int64_t UnixMillis() const override { return ms_; }
  int64_t ms() const { return ms_; }
  void Advance(int64_t ms) { ms_ += ms; }

 private:
  int64_t ms_ = 0;
};

// The public facts of a topic: where its records are, when they came, what their timestamps say.
// Nothing of their contents.
struct TopicScript {
  struct Record {
    uint64_t offset = 0;
    int64_t timestamp_ms = 0;
    int64_t arrival_ms = 0;  // at the broker
    uint64_t end = 0;        // of the partition once it is there: markers may follow
  };
  std::vector<std::vector<Record>> partitions;

  // A backlog that is there at 0, and records that come until `live_ms`. Timestamps repeat, go back
  // and fall together; partitions differ in size, and have offsets without records.
  static TopicScript Draw(std::mt19937_64& random, size_t partitions, int64_t live_ms);
  uint64_t EndAt(size_t partition, int64_t ms) const;
  int64_t last_arrival_ms() const;
};

// Schemas that a frame names. Any other id from 1000 on is forged, as kForged is.
enum SchemaId : int { kLearnt = 7, kRare = 8, kForged = 9, kFailing = 10, kLate = 11 };

// The one record in which two worlds differ. Others have forged schemas in both.
struct Victim {
  enum class Kind { kSmall, kNull, kLarge, kForged, kFailing, kLate };
  int32_t partition = 0;
  uint64_t offset = 0;
  Kind kind = Kind::kSmall;
};

// A broker and the way to it, on a script: large records take long, the line is slow at times, and
// now and then the client has to be made anew. All of that differs between worlds.
class BrokerDouble final : public MessageFetcher {
 public:
  BrokerDouble(const TopicScript& script, const Victim& victim, const SetClock& clock,
               uint64_t seed);

  Status Fetch(int32_t partition, size_t max, milliseconds, std::vector<FetchedMessage>*) override;
  Result<uint64_t> Add(int32_t) override { return 0; }
  Status Seek(int32_t partition, uint64_t offset) override;

 private:
  struct Line {
    std::vector<int64_t> here_ms;  // when each record is at the reader's side
    size_t cursor = 0;
    uint64_t end_told = 0;
  };
  const std::string& ValueFor(int schema);
  const std::string& ValueOf(int32_t partition, uint64_t offset);

  const TopicScript& script_;
  const Victim victim_;
  const SetClock& clock_;
  // Every world has breaks: a world is read in many more calls.
  static constexpr uint64_t kMostCallsToABreak = 400;

  std::mt19937_64 random_;
  uint64_t calls_left_ = 1 + random_() % kMostCallsToABreak;
  std::map<int, std::string> values_;  // by schema
  std::string large_;
  const std::string null_;
  std::vector<Line> lines_;
};

// ---- how it is done

inline TopicScript TopicScript::Draw(std::mt19937_64& random, size_t partitions, int64_t live_ms) {
  const auto below = [&](uint64_t n) { return random() % n; };
  TopicScript script;
  for (size_t p = 0; p < partitions; ++p) {
    std::vector<Record>& records = script.partitions.emplace_back();
    uint64_t offset = 0;
    int64_t timestamp = static_cast<int64_t>(below(1000)), arrival = 0;
    const size_t backlog = 2000 + below(12'000), live = below(4000);
    for (size_t i = 0; i < backlog + live; ++i) {
      // Producers write in bursts, and their clocks go back at times.
      if (below(3) == 0) timestamp += static_cast<int64_t>(below(4));
      if (below(500) == 0) timestamp -= static_cast<int64_t>(below(400));
      if (i >= backlog && below(4) == 0)
        arrival += static_cast<int64_t>(below(2 * static_cast<uint64_t>(live_ms) * 4 / live + 1));
      const uint64_t gap = below(200) == 0 ? below(3) : 0;
      records.push_back({offset, timestamp, std::min(arrival, live_ms), offset + 1 + gap});
      offset += 1 + gap;
    }
  }
  return script;
}

inline uint64_t TopicScript::EndAt(size_t partition, int64_t ms) const {
  const auto& records = partitions[partition];
  const auto after = std::ranges::upper_bound(records, ms, {}, &Record::arrival_ms);
  return after == records.begin() ? 0 : std::prev(after)->end;
}

inline int64_t TopicScript::last_arrival_ms() const {
  int64_t last = 0;
  for (const auto& records : partitions) last = std::max(last, records.back().arrival_ms);
  return last;
}

inline BrokerDouble::BrokerDouble(const TopicScript& script, const Victim& victim,
                                  const SetClock& clock, uint64_t seed)
    : script_(script), victim_(victim), clock_(clock), random_(seed) {
  constexpr int64_t kBytesPerMs = 20'000;
  large_ = ValueFor(kLearnt) + std::string(900'000, 'l');
  for (size_t p = 0; p < script.partitions.size(); ++p) {
    Line& line = lines_.emplace_back();
    int64_t free_ms = 0, bytes = 0;
    for (const auto& record : script.partitions[p]) {
      bytes += static_cast<int64_t>(ValueOf(static_cast<int32_t>(p), record.offset).size());
      free_ms = std::max(free_ms, record.arrival_ms) + bytes / kBytesPerMs;
      bytes %= kBytesPerMs;
      if (random_() % 2000 == 0) free_ms += static_cast<int64_t>(random_() % 300);
      line.here_ms.push_back(free_ms);
    }
  }
}

inline const std::string& BrokerDouble::ValueFor(int schema) {
  std::string& value = values_[schema];
  if (value.empty()) {
    for (const int shift : {32, 24, 16, 8, 0})
      value.push_back(static_cast<char>(int64_t{schema} >> shift));
    value.append(200, 'v');
  }
  return value;
}

inline const std::string& BrokerDouble::ValueOf(int32_t partition, uint64_t offset) {
  const bool is_victim = partition == victim_.partition && offset == victim_.offset;
  if (!is_victim && offset % 700 == 99) return ValueFor(1000 + static_cast<int>(offset));
  if (!is_victim)
    return ValueFor(offset % 100 == 1 ? kForged : offset % 100 == 2 ? kRare : kLearnt);
  switch (victim_.kind) {
    case Victim::Kind::kSmall:
      return ValueFor(kLearnt);
    case Victim::Kind::kNull:
      return null_;
    case Victim::Kind::kLarge:
      return large_;
    case Victim::Kind::kForged:
      return ValueFor(12);
    case Victim::Kind::kFailing:
      return ValueFor(kFailing);
    case Victim::Kind::kLate:
      return ValueFor(kLate);
  }
  return null_;
}

inline Status BrokerDouble::Fetch(int32_t partition, size_t max, milliseconds,
                                  std::vector<FetchedMessage>* messages) {
  if (--calls_left_ == 0) {
    calls_left_ = 1 + random_() % kMostCallsToABreak;
    return Fail(ErrorCode::kUnavailable, "the connection broke");
  }
  const auto p = static_cast<size_t>(partition);
  Line& line = lines_[p];
  const auto& records = script_.partitions[p];
  const int64_t now = clock_.ms();
  // A queue has what happens to have come, in pieces of any size.
  max = std::min<size_t>(max, 1 + random_() % 3000);
  for (; max > 0 && line.cursor < records.size() && line.here_ms[line.cursor] <= now; --max) {
    const auto& record = records[line.cursor++];
    const std::string& value = ValueOf(partition, record.offset);
    messages->push_back({.offset = record.offset,
                         .timestamp_ms = record.timestamp_ms,
                         .value = value,
                         .null = value.empty()});
  }
  const bool all = line.cursor == records.size() || records[line.cursor].arrival_ms > now;
  const uint64_t end = line.cursor == 0 ? 0 : records[line.cursor - 1].end;
  if (max > 0 && all && end > line.end_told) {
    messages->push_back({.offset = end, .at_end = true});
    line.end_told = end;
  }
  return {};
}

inline Status BrokerDouble::Seek(int32_t partition, uint64_t offset) {
  const auto& records = script_.partitions[static_cast<size_t>(partition)];
  const auto at = std::ranges::lower_bound(records, offset, {}, &TopicScript::Record::offset);
  Line& line = lines_[static_cast<size_t>(partition)];
  line.cursor = static_cast<size_t>(at - records.begin());
  line.end_told = 0;
  return {};
}

}  // namespace tacit::stream
