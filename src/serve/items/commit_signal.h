#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace tacit::serve {

// Tells a waiting thread that a commit was published. Thread-safe; outlives whoever waits.
class CommitSignal {
 public:
  using Clock = std::chrono::steady_clock;

  // Wakes the waiters. Cheap: the commit thread calls it after each commit.
  void Tell() {
    {
      const std::lock_guard lock(mutex_);
      ++told_;
    }
    changed_.notify_all();
  }
  // The number of calls of Tell so far.
  uint64_t told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  // Waits until Tell was called more than `known` times, or until this time, if there is one.
  void Wait(uint64_t known, std::optional<Clock::time_point> until) const {
    std::unique_lock lock(mutex_);
    const auto news = [&] { return told_ != known; };
    if (until) {
      changed_.wait_until(lock, *until, news);
    } else {
      changed_.wait(lock, news);
    }
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  uint64_t told_ = 0;
};

}  // namespace tacit::serve
