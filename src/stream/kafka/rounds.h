#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads/mutex.h"

namespace tacit::stream {

// The next offset to be written in a partition.
struct PartitionEnd {
  int32_t partition = 0;
  uint64_t end = 0;
  friend bool operator==(const PartitionEnd&, const PartitionEnd&) = default;
};

// The records that had arrived by a time chosen by the clock alone: the partitions that had grown
// since the previous round, ascending, with their ends. With `tick` the clock's tick is at the
// round's end.
struct Round {
  std::vector<PartitionEnd> moved;
  bool tick = false;
  friend bool operator==(const Round&, const Round&) = default;
};

// A queue of rounds that were closed and not yet begun, oldest first. The closing thread follows
// the clock, and the reader takes rounds whenever it has time, so a slow reader changes nothing
// about what is in which round. A round takes about two bytes for each partition that moved; beyond
// `bytes_max` (days of rounds) the newest round grows instead. Thread-safe.
class RoundQueue {
 public:
  static constexpr size_t kBytesMax = 16 << 20;

  explicit RoundQueue(size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // Closes a round with these ends; partitions that are not named have not moved. If none has moved
  // since the last round, or with `tick` since the last tick, it closes no round. Returns false,
  // without closing a round, if an end went back: records that existed are gone.
  bool Close(std::span<const PartitionEnd> ends, bool tick);
  // Returns the oldest round, once; nullopt if all are begun.
  std::optional<Round> Pop();
  // Waits until there is a round; returns false if none comes in time.
  bool WaitFor(std::chrono::milliseconds timeout);
  bool empty() const;
  // Forgets all rounds and ends.
  void Clear();

 private:
  void Append(const Round& round) TACIT_REQUIRES(mutex_);
  void Encode(const Round& round) TACIT_REQUIRES(mutex_);
  Round Decode() TACIT_REQUIRES(mutex_);

  const size_t bytes_max_;
  mutable Mutex mutex_;
  Condition closed_;
  std::map<int32_t, uint64_t> ends_ TACIT_GUARDED_BY(mutex_);  // of the newest round
  bool moved_since_tick_ TACIT_GUARDED_BY(mutex_) = false;
  // All rounds but the newest, end to end: tick, number of partitions, and for each its number and
  // its growth, as varints.
  std::string encoded_ TACIT_GUARDED_BY(mutex_);
  size_t read_ TACIT_GUARDED_BY(mutex_) = 0;  // bytes of `encoded_` that were read
  // The ends of the last round in `encoded_`, and of the last round that was begun.
  std::map<int32_t, uint64_t> ends_encoded_ TACIT_GUARDED_BY(mutex_);
  std::map<int32_t, uint64_t> ends_read_ TACIT_GUARDED_BY(mutex_);
  std::optional<Round> newest_ TACIT_GUARDED_BY(mutex_);  // grows when `encoded_` is full
};

}  // namespace tacit::stream
