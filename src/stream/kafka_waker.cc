#include "stream/kafka_waker.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace tacit::stream {
namespace {

size_t SettingOf(rd_kafka_t* client, const char* name) {
  std::array<char, 64> text{};
  size_t size = text.size();
  if (rd_kafka_conf_get(rd_kafka_conf(client), name, text.data(), &size) != RD_KAFKA_CONF_OK)
    return 0;
  size_t value = 0;
  std::from_chars(text.data(), text.data() + size, value);
  return value;
}

bool HasSetting(rd_kafka_t* client, const char* name) {
  size_t size = 0;
  return rd_kafka_conf_get(rd_kafka_conf(client), name, nullptr, &size) == RD_KAFKA_CONF_OK;
}

}  // namespace

FetchWaker::FetchWaker(rd_kafka_t* client) {
  if (HasSetting(client, kFetchQueueBackoff)) return;
  messages_max_ = SettingOf(client, "queued.min.messages");
  bytes_max_ = SettingOf(client, "queued.max.messages.kbytes") << 10;
}

bool FetchWaker::IsDue(size_t taken, size_t bytes, size_t left, Clock::TimePoint now) {
  if (messages_max_ == 0) return false;
  // What is left cannot be weighed, but is much like what was taken. Half counts as full: the queue
  // was looked at by the fetcher some time before it is here.
  const size_t there = taken + left;
  if (there == 0 && !asleep_) return false;
  const size_t weight = taken == 0 ? 0 : bytes / taken * there;
  if (there >= std::max<size_t>(1, messages_max_ / 2) || weight >= bytes_max_ / 2) {
    asleep_ = true;
    at_most_ = std::max(at_most_, there / 2);
  }
  if (!asleep_ || left > at_most_ || now < next_) return false;
  next_ = now + kPause;
  at_most_ = left / 2;
  // An empty queue has no half: who has been woken by now fetches.
  asleep_ = left > 0;
  return true;
}

void FetchWaker::Wake(rd_kafka_t* client, const std::string& topic,
                      std::span<const int32_t> partitions) {
  const KafkaPartitions list(
      rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const int32_t partition : partitions)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset =
        RD_KAFKA_OFFSET_END;
  // In time for sending and no longer; the answers are nobody's.
  rd_kafka_offsets_for_times(client, list.get(), 0);
}

}  // namespace tacit::stream
