#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/threads/mutex.h"

// Private to this room: limits on a listener's connections and on the memory of its requests.
namespace tacit::http {

using SteadyTime = std::chrono::steady_clock::time_point;

// Counts the connections inside, so that a stop can wait until all have left. Thread-safe.
class Gate {
 public:
  explicit Gate(size_t capacity) : capacity_(capacity) {}
  // Returns false when it is full; the caller must then not call Leave.
  bool Enter();
  void Leave();
  // Returns false if connections are still inside at the deadline.
  bool WaitEmpty(SteadyTime deadline);

 private:
  const size_t capacity_;
  Mutex mutex_;
  Condition empty_;
  size_t inside_ TACIT_GUARDED_BY(mutex_) = 0;
};

// The bytes that requests and their answers may hold together. A small one may fill the pool, a
// large one must leave a quarter free, so unfinished large ones never keep a small one out.
// Thread-safe.
class BytePool {
 public:
  static constexpr uint64_t kSmall = 64 << 10;

  explicit BytePool(uint64_t capacity) : capacity_(capacity) {}

  // Takes `added` more bytes for a request that then holds `total`; returns false when there is no
  // room. REQUIRES that Give returns all of `total` in the end.
  bool Take(uint64_t added, uint64_t total) {
    const uint64_t most = total > kSmall ? capacity_ - capacity_ / 4 : capacity_;
    // A single request is always admitted; the limit on bodies bounds it.
    const uint64_t bound = std::max(most, total);
    uint64_t held = held_.load(std::memory_order_relaxed);
    // Never adds first and subtracts on failure: in between, other requests would be refused.
    do {
      if (held + added > bound) return false;
    } while (!held_.compare_exchange_weak(held, held + added, std::memory_order_relaxed));
    return true;
  }
  void Give(uint64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  // True if slow requests are in the way of others.
  bool pressed() const { return held() > capacity_ / 2; }

 private:
  const uint64_t capacity_;
  std::atomic<uint64_t> held_{0};
};

// One session's share of a pool. Not thread-safe.
class Holding {
 public:
  explicit Holding(BytePool& pool) : pool_(pool) {}
  ~Holding() { pool_.Give(bytes_); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  // Holds this many bytes from now on; returns false, and changes nothing, when there is no room.
  bool Set(uint64_t bytes) {
    if (bytes > bytes_ && !pool_.Take(bytes - bytes_, bytes)) return false;
    if (bytes < bytes_) pool_.Give(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  uint64_t bytes() const { return bytes_; }
  bool pressed() const { return bytes_ > 0 && pool_.pressed(); }

 private:
  BytePool& pool_;
  uint64_t bytes_ = 0;
};

}  // namespace tacit::http
