#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "base/threads/mutex.h"
#include "base/threads/named_thread.h"

namespace tacit {

// A thread that works at a pace: it rests, or waits to be woken, between pieces of work, and a stop
// ends either at once. As its owner's last member it ends before all that it uses. Thread-safe,
// except that one thread at a time calls Start, started and Stop.
class PacedThread {
 public:
  using Seconds = std::chrono::duration<double>;

  PacedThread() = default;
  ~PacedThread() { Stop(); }
  PacedThread(const PacedThread&) = delete;
  PacedThread& operator=(const PacedThread&) = delete;

  // Runs `work` under this name (named_thread.h). REQUIRES that it was not started.
  template <size_t kLetters>
  void Start(const char (&name)[kLetters], std::function<void()> work) {
    thread_ = NamedThread(name, std::move(work));
  }
  bool started() const { return thread_.joinable(); }
  // Ends all rests and waits, from now on, and returns when the work has ended.
  void Stop();
  // True once it is to stop; a long piece of work looks at this.
  const std::atomic<bool>& stopping() const { return stopping_; }
  // Ends the wait of Await that is under way, or else the next.
  void Wake();

  // Both are for the work, and return false once it is to stop. Rest is not ended by Wake.
  bool Rest(Seconds time);
  // Waits to be woken, for so long at most.
  bool Await(std::optional<Seconds> at_most = std::nullopt);

 private:
  Mutex mutex_;
  Condition changed_;
  std::atomic<bool> stopping_ = false;  // set under mutex_, so that no wait misses it
  bool woken_ TACIT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tacit
