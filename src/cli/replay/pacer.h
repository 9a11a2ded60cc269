#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace tacit::cli {

// Decides when the next line is due. Not thread-safe.
class ReplayPacer {
 public:
  struct Options {
    double rate = 0;   // lines a second; 0: any
    double speed = 0;  // times as fast as the lines' own times; 0: they do not matter
  };
  ReplayPacer(Options options, const Clock& clock) : options_(options), clock_(clock) {}

  // The time at which the next line is due. `time_ms` is the line's own time, nothing where it has
  // none. A line whose time is earlier than another's holds nothing up.
  Clock::TimePoint Next(std::optional<double> time_ms) {
    if (lines_ == 0) start_ = clock_.Now();
    const uint64_t before = lines_++;
    if (options_.rate > 0) return After(static_cast<double>(before) / options_.rate);
    if (options_.speed <= 0 || !time_ms) return start_;
    if (!first_ms_) first_ms_ = time_ms;
    return After((*time_ms - *first_ms_) / 1000 / options_.speed);
  }

 private:
  Clock::TimePoint After(double seconds) const {
    return start_ +
           std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(seconds));
  }

  const Options options_;
  const Clock& clock_;
  uint64_t lines_ = 0;
  Clock::TimePoint start_;
  std::optional<double> first_ms_;
};

}  // namespace tacit::cli
