#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/threads/mutex.h"

namespace tacit::serve {

// Tells a waiting thread that a commit was published. Thread-safe; outlives its waiters.
class CommitSignal {
 public:
  using Clock = std::chrono::steady_clock;

  // Wakes the waiters. Cheap: the commit thread calls it after each commit.
  void Tell() {
    {
      const MutexLock lock(mutex_);
      ++told_;
    }
    changed_.NotifyAll();
  }
  // The number of calls of Tell so far.
  uint64_t told() const {
    const MutexLock lock(mutex_);
    return told_;
  }
  // Waits until Tell was called more than `known` times, or until this time, if there is one.
  void Wait(uint64_t known, std::optional<Clock::time_point> until) const {
    const MutexLock lock(mutex_);
    const auto news = [&]() TACIT_REQUIRES(mutex_) { return told_ != known; };
    if (until) {
      changed_.WaitUntil(mutex_, *until, news);
    } else {
      changed_.Wait(mutex_, news);
    }
  }

 private:
  mutable Mutex mutex_;
  mutable Condition changed_;
  uint64_t told_ TACIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacit::serve
