#include "stream/kafka/waker.h"

#include <algorithm>

namespace tacit::stream {
namespace {

size_t SettingOf(rd_kafka_t* client, const char* name) {
  uint64_t value = 0;
  return GetKafkaNumber(rd_kafka_conf(client), name, &value) ? value : 0;
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
  // The messages left cannot be weighed, but resemble those taken. Half full counts as full: the
  // fetcher saw the queue some time before this call.
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
  // An empty queue has no half: a fetcher woken by now fetches.
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
  // The timeout of 0 suffices to send the request; its answer is ignored.
  rd_kafka_offsets_for_times(client, list.get(), 0);
}

}  // namespace tacit::stream
