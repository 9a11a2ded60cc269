#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"
#include "stream/kafka/client.h"

namespace tacit::stream {

// Wakes librdkafka's fetcher. Before 2.2 it sleeps for up to a second once the fetched messages
// reach queued.min.messages or queued.max.messages.kbytes, however soon they are used up (its issue
// 2879), and no setting shortens that: a reader of a million records a second would find the queue
// empty for most of each second. Any request wakes the thread that fetches from its broker. Private
// to the room; not thread-safe.
class FetchWaker {
 public:
  // Reads a consumer's settings. If librdkafka has fetch.queue.backoff.ms, MakeKafkaConf has set it
  // and this class wakes nothing.
  explicit FetchWaker(rd_kafka_t* client);
  // For tests: a queue is full with this many messages, or bytes of them.
  FetchWaker(size_t messages_max, size_t bytes_max)
      : messages_max_(messages_max), bytes_max_(bytes_max) {}

  // Notes that `taken` messages with values of `bytes` in all have just been taken, and `left` are
  // in the queue. Returns true when the fetcher may be asleep and half of what it left is used up;
  // then once more for each further half, every few milliseconds at most.
  bool IsDue(size_t taken, size_t bytes, size_t left, Clock::TimePoint now);
  // Returns true if the fetcher may still be asleep: then no message may come before the next Wake.
  bool asleep() const { return asleep_; }
  static constexpr Clock::Duration kPause = std::chrono::milliseconds(10);
  // Asks the leaders of these partitions for their ends, and waits for no answer.
  static void Wake(rd_kafka_t* client, const std::string& topic,
                   std::span<const int32_t> partitions);

 private:
  size_t messages_max_ = 0, bytes_max_ = 0;  // 0: nothing is ever due
  size_t at_most_ = 0;                       // due with at most this many messages left; 0: not due
  bool asleep_ = false;                      // the fetcher, as far as is known
  Clock::TimePoint next_{};
};

}  // namespace tacit::stream
