#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"
#include "stream/kafka_client.h"

namespace tacit::stream {

// Wakes librdkafka's fetcher. Before 2.2 it sleeps for up to a second once what it has fetched
// reaches queued.min.messages or queued.max.messages.kbytes, however soon that is used up (its
// issue 2879), and no setting shortens that: a reader of a million records a second would find the
// queue empty for most of each second. Any request wakes the thread that fetches from its broker.
// Private to the room; not thread-safe.
class FetchWaker {
 public:
  // Of a consumer's settings. Where librdkafka can be told to look again soon, it has been
  // (fetch.queue.backoff.ms, see MakeKafkaConf), and nothing is woken.
  explicit FetchWaker(rd_kafka_t* client);
  // For tests: a queue is full with so many messages, or bytes of them.
  FetchWaker(size_t messages_max, size_t bytes_max)
      : messages_max_(messages_max), bytes_max_(bytes_max) {}

  // `taken` messages with values of `bytes` in all have just been taken, and `left` are in the
  // queue. True when the fetcher may be asleep and half of what it left is used up; then once more
  // for each further half, every few milliseconds at most.
  bool IsDue(size_t taken, size_t bytes, size_t left, Clock::TimePoint now);
  // Asks the leaders of these partitions where they end, and waits for no answer.
  static void Wake(rd_kafka_t* client, const std::string& topic,
                   std::span<const int32_t> partitions);

 private:
  static constexpr Clock::Duration kPause = std::chrono::milliseconds(10);

  size_t messages_max_ = 0, bytes_max_ = 0;  // 0: nothing is ever due
  size_t at_most_ = 0;                       // it is due with so many messages left; 0: it is not
  bool asleep_ = false;                      // the fetcher, for all that is known
  Clock::TimePoint next_{};
};

}  // namespace tacit::stream
