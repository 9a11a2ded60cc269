#include "store/disk/retention_clock.h"

#include <algorithm>
#include <utility>

#include "base/files/log.h"

namespace tacit::store {
namespace {

constexpr int64_t kDayMs = 86'400'000;
// Faster than real time, to catch up after a stop; slow enough for an operator to notice a wrong
// clock before it costs more than the days it was wrong.
constexpr int64_t kPace = 2;

}  // namespace

RetentionClock::RetentionClock(const Clock& clock, std::string name)
    : clock_(clock), name_(std::move(name)), counted_(clock.Now()) {}

void RetentionClock::Start(int64_t known_ms) {
  const MutexLock lock(mutex_);
  started_ = true;
  known_ms_ = known_ms;
  counted_ = clock_.Now();
  Advance();
}

void RetentionClock::Saw(int64_t record_ms) {
  const MutexLock lock(mutex_);
  known_ms_ = std::max(known_ms_, std::min(record_ms, clock_.UnixMillis()));
}

int64_t RetentionClock::Now() {
  const MutexLock lock(mutex_);
  if (!started_) return 0;
  Advance();
  return std::min(known_ms_, clock_.UnixMillis());
}

int64_t RetentionClock::Known() {
  const MutexLock lock(mutex_);
  return known_ms_;
}

void RetentionClock::Advance() {
  const auto passed =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Now() - counted_);
  counted_ += passed;
  const int64_t wall = clock_.UnixMillis();
  known_ms_ = std::max(known_ms_, std::min(wall, known_ms_ + kPace * passed.count()));
  Warn(wall);
}

void RetentionClock::Warn(int64_t wall_ms) {
  if (wall_ms - known_ms_ < kDayMs) {
    told_ = false;
  } else if (!std::exchange(told_, true)) {
    spdlog::warn(
        "store {}: the system's clock is {} days ahead of all that was learnt before. After a stop "
        "of that length this is right. Otherwise set the clock: histories that it calls too old "
        "are "
        "not read, and are dropped when as much time has really passed",
        name_, (wall_ms - known_ms_) / kDayMs);
  }
}

}  // namespace tacit::store
