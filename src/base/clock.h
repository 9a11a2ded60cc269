#pragma once

#include <chrono>
#include <cstdint>

namespace tacit {

// A time source, injected so that tests can control it. Thread-safe.
class Clock {
 public:
  using Duration = std::chrono::nanoseconds;
  using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

  virtual ~Clock() = default;
  // Monotonic time, for intervals.
  virtual TimePoint Now() const = 0;
  // Milliseconds since 1970; may jump. For people to read, never for decisions.
  virtual int64_t UnixMillis() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  int64_t UnixMillis() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

inline double Seconds(Clock::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace tacit
