#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tacit {

// Puts what several threads do side by side into one order again: whoever holds ticket 0 goes
// first, then ticket 1, and so on. Thread-safe.
class Turns {
 public:
  // Waits for this ticket's turn. Returns false if there are no more turns.
  bool Await(uint64_t ticket) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || next_ == ticket; });
    return !closed_;
  }
  // Ends the turn that Await began.
  void Next() {
    std::lock_guard lock(mutex_);
    ++next_;
    changed_.notify_all();
  }
  // Ends all waiting, now and later. May be called from any thread, more than once.
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0;
  bool closed_ = false;
};

}  // namespace tacit
