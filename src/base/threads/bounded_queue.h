#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

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
    std::unique_lock lock(mutex_);
    writable_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    readable_.notify_one();
    return true;
  }

  // Like Push, but gives up after `timeout`. On false the caller keeps the item; closed() says
  // whether the queue was closed or the time was up.
  bool PushFor(T* item, std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    writable_.wait_for(lock, timeout, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(*item));
    readable_.notify_one();
    return true;
  }

  // Waits for an item. Returns nullopt when the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    readable_.wait(lock, [&] { return closed_ || !items_.empty(); });
    return TakeFront();
  }

  // Like Pop, but gives up after `timeout`; closed_and_empty() tells the two cases apart.
  std::optional<T> PopFor(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    readable_.wait_for(lock, timeout, [&] { return closed_ || !items_.empty(); });
    return TakeFront();
  }

  // The item that the next Pop gives, null if none waits. For a queue with one reader: the item
  // stays where it is until that reader pops.
  const T* Peek() const {
    std::lock_guard lock(mutex_);
    return items_.empty() ? nullptr : &items_.front();
  }

  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    readable_.notify_all();
    writable_.notify_all();
  }

  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }
  bool closed_and_empty() const {
    std::lock_guard lock(mutex_);
    return closed_ && items_.empty();
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  std::optional<T> TakeFront() {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    writable_.notify_one();
    return item;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable readable_, writable_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace tacit
