#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace tacit {

// What joins two stages: at most `capacity` items, a writer waits while it is full. Closing lets
// the reader drain what is there and refuses new items. Thread-safe; any number of each side.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // Waits for room. False when the queue is closed: the item was not taken.
  bool Push(T item) {
    std::unique_lock lock(mutex_);
    writable_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    readable_.notify_one();
    return true;
  }

  // As Push, but gives up after `timeout`: then the item is still the caller's, as it is when the
  // queue is closed; closed() tells the two apart.
  bool PushFor(T* item, std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    writable_.wait_for(lock, timeout, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(*item));
    readable_.notify_one();
    return true;
  }

  // Waits for an item; nothing when the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    readable_.wait(lock, [&] { return closed_ || !items_.empty(); });
    return TakeFront();
  }

  // As Pop, but gives up after `timeout`; closed_and_empty() tells the two apart.
  std::optional<T> PopFor(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    readable_.wait_for(lock, timeout, [&] { return closed_ || !items_.empty(); });
    return TakeFront();
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
