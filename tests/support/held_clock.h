#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.h"

namespace tacit::test {

// A clock that stands still until the test lets time pass, so that a machine that stalls runs into
// no timeout. Thread-safe.
class HeldClock final : public Clock {
 public:
  TimePoint Now() const override {
    ++looks_;
    return TimePoint(Duration(nanoseconds_.load()));
  }
  int64_t UnixMillis() const override { return 0; }

  void Pass(std::chrono::milliseconds time) { nanoseconds_ += Duration(time).count(); }
  // Counts the readings of the clock. A loop without requests reads it once a tick.
  int64_t looks() const { return looks_; }

 private:
  std::atomic<int64_t> nanoseconds_{1'000'000'000};
  mutable std::atomic<int64_t> looks_{0};
};

}  // namespace tacit::test
