#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/threads/mutex.h"

namespace tacit::store {

// The time that decides when histories are dropped for good. A system's clock may jump, so an item
// it calls too old may not be. This time follows the clock only as far as other evidence shows that
// time has passed: twice the steady clock's count since the store's last commit, or a record's own
// time. It is never ahead of the clock but may lag (after a long stop, expired items stay up to
// half the stop's length longer). Histories then leave the disk later; readers use the clock and
// skip items that it calls too old. Thread-safe.
class RetentionClock {
 public:
  // The clock must outlive this object. `name` is the store's, for the log.
  RetentionClock(const Clock& clock, std::string name);

  // Sets the time known at the last commit. Before this call, Now() is 1970.
  void Start(int64_t known_ms);
  // Notes the time of a record that was learnt from.
  void Saw(int64_t record_ms);
  // Milliseconds since 1970.
  int64_t Now();
  // The time to store for the next Start; never decreases.
  int64_t Known();
  int64_t WallTime() const { return clock_.UnixMillis(); }

 private:
  void Advance() TACIT_REQUIRES(mutex_);
  void Warn(int64_t wall_ms) TACIT_REQUIRES(mutex_);

  const Clock& clock_;
  const std::string name_;
  Mutex mutex_;
  bool started_ TACIT_GUARDED_BY(mutex_) = false, told_ TACIT_GUARDED_BY(mutex_) = false;
  int64_t known_ms_ TACIT_GUARDED_BY(mutex_) = 0;
  Clock::TimePoint counted_ TACIT_GUARDED_BY(mutex_);  // steady time already counted in known_ms_
};

}  // namespace tacit::store
