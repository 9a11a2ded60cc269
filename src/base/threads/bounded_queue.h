#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/threads/mutex.h"

namespace tacit {

// A queue between two pipeline stages. It holds at most `capacity` items; a writer waits while it
// is full. After Close the reader can drain the remaining items and new items are refused.
// Thread-safe; any number of readers and writers.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // Waits for room. Returns false, without taking the item, when the queue is closed.
  bool Push(T item) {
    const MutexLock lock(mutex_);
    writable_.Wait(mutex_,
                   [&]() TACIT_REQUIRES(mutex_) { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    readable_.NotifyOne();
    return true;
  }

  // Like Push, but gives up after `timeout`. On false the caller keeps the item; closed() says
  // whether the queue was closed or the time was up.
  bool PushFor(T* item, std::chrono::nanoseconds timeout) {
    const MutexLock lock(mutex_);
    writable_.WaitFor(mutex_, timeout, [&]() TACIT_REQUIRES(mutex_) {
      return closed_ || items_.size() < capacity_;
    });
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(*item));
    readable_.NotifyOne();
    return true;
  }

  // Waits for an item. Returns nullopt when the queue is closed and empty.
  std::optional<T> Pop() {
    const MutexLock lock(mutex_);
    readable_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    return TakeFront();
  }

  // Like Pop, but gives up after `timeout`; closed_and_empty() tells the two cases apart.
  std::optional<T> PopFor(std::chrono::nanoseconds timeout) {
    const MutexLock lock(mutex_);
    readable_.WaitFor(mutex_, timeout,
                      [&]() TACIT_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    return TakeFront();
  }

  // The item that the next Pop gives, null if none waits. For a queue with one reader: the item
  // stays where it is until that reader pops.
  const T* Peek() const {
    const MutexLock lock(mutex_);
    return items_.empty() ? nullptr : &items_.front();
  }

  void Close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    readable_.NotifyAll();
    writable_.NotifyAll();
  }

  bool closed() const {
    const MutexLock lock(mutex_);
    return closed_;
  }
  bool closed_and_empty() const {
    const MutexLock lock(mutex_);
    return closed_ && items_.empty();
  }
  size_t size() const {
    const MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  std::optional<T> TakeFront() TACIT_REQUIRES(mutex_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    writable_.NotifyOne();
    return item;
  }

  const size_t capacity_;
  mutable Mutex mutex_;
  Condition readable_, writable_;
  std::deque<T> items_ TACIT_GUARDED_BY(mutex_);
  bool closed_ TACIT_GUARDED_BY(mutex_) = false;
};

}  // namespace tacit
