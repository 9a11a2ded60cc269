#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/threads/mutex.h"
#include "event/codec.h"
#include "event/raw_records.h"
#include "metrics/registry.h"

namespace tacit::train {

// Formats where a dead letter's record lies.
std::string PlaceOf(const event::DeadLetter& letter);

// Tells the operator of dead letters. Metrics count them by the part of the record that was bad.
// The log has the first of each part with its place, then a rate each minute: places and numbers,
// never contents. When a tenth of the last records is dead, trouble() says so.
//
// Un-noised: operator-only. One thread calls See, any thread the others.
class DeadLetterNews {
 public:
  // `kept_in` is the place of the dead letters, as the log names it.
  DeadLetterNews(const Clock& clock, metrics::Registry& registry, std::string kept_in);

  // Takes note of a run of records and of the dead letters among them, or of those that another
  // process has summed up.
  void See(const event::RawRecords& records, std::span<const event::DeadLetter> dead);
  // Returns the share of the last records that could not be learnt from, by part; "" while it is
  // below a tenth.
  std::string trouble() const;
  // The records so far that could not be learnt from because of this part.
  uint64_t dead(size_t part) const { return static_cast<uint64_t>(dead_[part].value()); }

 private:
  struct Counts {
    uint64_t records = 0;
    std::array<uint64_t, event::kBadParts> dead{};
    uint64_t all_dead() const;
    std::string ByPart() const;  // "label 1,200, syntax 4"
  };

  void TellFirst(event::BadPart part, const std::string& place) const;
  void TellRate();

  const Clock& clock_;
  const std::string kept_in_;
  metrics::Counter read_;
  std::array<metrics::Counter, event::kBadParts> dead_;
  std::array<bool, event::kBadParts> told_{};
  Counts since_told_;           // for the log's rate
  Clock::TimePoint last_told_;  // when the log had the rate, or when counting began
  mutable Mutex mutex_;
  // Two windows of records, so that the last ones are never few.
  Counts recent_ TACIT_GUARDED_BY(mutex_), previous_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::train
