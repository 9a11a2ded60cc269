#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace tacit {

// A thread's sign of life, which another looks at. Thread-safe.
class Heartbeat {
 public:
  // Begins a piece of work, which must end in good time.
  void Work() { count_.store((count_.load(std::memory_order_relaxed) | 1) + 2); }
  // Waits for others, for as long as it takes.
  void Rest() { count_.store((count_.load(std::memory_order_relaxed) + 1) & ~uint64_t{1}); }
  // Changes with each piece of work; nothing while the thread rests.
  std::optional<uint64_t> Look() const {
    const uint64_t count = count_.load();
    return count % 2 == 0 ? std::nullopt : std::optional<uint64_t>(count);
  }

 private:
  std::atomic<uint64_t> count_{0};  // odd while it works; written by one thread
};

}  // namespace tacit
