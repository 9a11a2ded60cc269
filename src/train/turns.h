#pragma once

#include <cstdint>

#include "base/threads/mutex.h"

namespace tacit::train {

// Puts what several threads do side by side into one order again: the holder of ticket 0 goes
// first, then ticket 1, and so on. Thread-safe.
class Turns {
 public:
  // Waits for this ticket's turn. Returns false if there are no more turns.
  bool Await(uint64_t ticket) {
    const MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return closed_ || next_ == ticket; });
    return !closed_;
  }
  // Ends the turn that Await began.
  void Next() {
    const MutexLock lock(mutex_);
    ++next_;
    changed_.NotifyAll();
  }
  // Ends all waiting, now and later. May be called from any thread, more than once.
  void Close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  Condition changed_;
  uint64_t next_ TACIT_GUARDED_BY(mutex_) = 0;
  bool closed_ TACIT_GUARDED_BY(mutex_) = false;
};

}  // namespace tacit::train
