#include "stream/kafka_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "stream/kafka_topic.h"

namespace tacit::stream {
namespace {

using event::Envelope;
using event::PublicMark;

constexpr size_t kRecordsPerFrame = 4096;
constexpr size_t kBytesPerFrame = 1 << 20;
constexpr Clock::Duration kBackoffMin = std::chrono::milliseconds(500);
constexpr Clock::Duration kBackoffMax = std::chrono::seconds(30);

std::string_view ValueOf(const rd_kafka_message_t& message) {
  return {static_cast<const char*>(message.payload), message.payload == nullptr ? 0 : message.len};
}

}  // namespace

KafkaPartition::KafkaPartition(int32_t id, const std::string& topic, uint32_t max_record_bytes,
                               metrics::Registry* metrics)
    : id_(id), topic_(topic), max_record_bytes_(max_record_bytes) {
  if (metrics == nullptr) return;
  const auto gauge = [&](const char* position) {
    return metrics->AddGauge(metrics::Audience::kOperator, "tacit_source_lag",
                             "Offsets between a position and the partition's end: what was read, "
                             "what the store has committed, what others see of it in Kafka",
                             {{"partition", std::to_string(id)}, {"position", position}});
  };
  lag_read_ = gauge("read");
  lag_store_ = gauge("store");
  lag_group_ = gauge("group");
}

void KafkaPartition::Start(uint64_t offset, uint64_t lost) {
  next_ = offset;
  lost_ = lost_ || lost > 0;
  ended_ = false;
}

void KafkaPartition::Hold(rd_kafka_message_t* message) {
  if (head_ == held_.size()) {
    held_.clear();
    head_ = 0;
  }
  held_.push_back(message);
  ended_ = false;
  end_ = std::max(end_, static_cast<uint64_t>(message->offset) + 1);
}

void KafkaPartition::DropFetched() {
  for (; head_ < held_.size(); ++head_) rd_kafka_message_destroy(held_[head_]);
  held_.clear();
  head_ = 0;
  ended_ = false;
}

void KafkaPartition::EndsAt(uint64_t offset) {
  ended_ = true;
  end_ = std::max(end_, offset);
}

bool KafkaPartition::Ready(Clock::TimePoint now) const {
  if (paused_) return false;
  if (lost_ || tick_) return true;
  return head_ < held_.size() && (!waiting_ || now >= retry_at_);
}

std::optional<RecordMark> KafkaPartition::Take(Clock::TimePoint now, Envelope* envelope,
                                               event::RawRecords* records) {
  records->partition = id_;
  records->first_offset = next_;
  records->origin = topic_;
  if (std::exchange(lost_, false)) records->marks.push_back({PublicMark::Kind::kLost, next_, ""});
  if (std::exchange(tick_, false)) {
    records->marks.push_back({PublicMark::Kind::kClockTick, next_, ""});
    tick_from_ = next_;
  }
  if (!records->marks.empty()) return std::nullopt;

  rd_kafka_message_t* last = nullptr;  // kept until it is known to be the frame's last
  bool held_up = false;
  for (; head_ < held_.size(); ++head_) {
    rd_kafka_message_t* message = held_[head_];
    const auto offset = static_cast<uint64_t>(message->offset);
    if (offset < next_) {
      rd_kafka_message_destroy(message);
      continue;
    }
    if (records->size() == 0) records->first_offset = offset;
    const bool full =
        records->size() == kRecordsPerFrame || records->bytes.size() >= kBytesPerFrame;
    if (full || offset != records->end_offset()) break;
    held_up = !Append(*message, envelope, records);
    if (held_up) break;
    next_ = offset + 1;
    if (last != nullptr) rd_kafka_message_destroy(last);
    last = message;
  }
  if (!held_up || records->size() > 0) backoff_ = {};
  waiting_ = held_up;
  if (held_up) Wait(now);
  if (last == nullptr) return std::nullopt;
  const RecordMark mark = MarkOf(*last);
  rd_kafka_message_destroy(last);
  return mark;
}

bool KafkaPartition::Append(const rd_kafka_message_t& message, Envelope* envelope,
                            event::RawRecords* records) {
  std::string_view payload;
  const auto outcome = OpenValue(message, envelope, &payload);
  if (outcome == Envelope::Outcome::kWait) return false;
  if (outcome == Envelope::Outcome::kFault) {
    records->faults.push_back({static_cast<uint32_t>(records->size()), reason_});
  } else {
    records->bytes.append(payload);
  }
  const bool named = envelope != nullptr && outcome == Envelope::Outcome::kPayload;
  const std::string_view event_id = named ? envelope->event_id() : std::string_view();
  // Mostly no record has one.
  if (!event_id.empty() || !records->event_id.empty()) {
    while (records->event_id.size() < records->size()) records->event_id.Append("");
    records->event_id.Append(event_id);
  }
  records->end.push_back(static_cast<uint32_t>(records->bytes.size()));
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  records->timestamp_ms.push_back(
      std::max<int64_t>(rd_kafka_message_timestamp(&message, &type), 0));
  return true;
}

Envelope::Outcome KafkaPartition::OpenValue(const rd_kafka_message_t& message, Envelope* envelope,
                                            std::string_view* payload) {
  *payload = ValueOf(message);
  if (payload->size() > max_record_bytes_) {
    reason_ = fmt::format("a value of {} bytes, more than source.max_record_bytes {}",
                          payload->size(), max_record_bytes_);
    return Envelope::Outcome::kFault;
  }
  if (envelope == nullptr) {
    if (message.payload != nullptr) return Envelope::Outcome::kPayload;
    reason_ = "null value";
    return Envelope::Outcome::kFault;
  }
  ReadHeaders(message, &headers_);
  return envelope->Open({*payload, message.payload == nullptr, headers_}, payload, &reason_);
}

void KafkaPartition::Wait(Clock::TimePoint now) {
  backoff_ = std::clamp(backoff_ * 2, kBackoffMin, kBackoffMax);
  retry_at_ = now + backoff_;
}

std::string KafkaPartition::wait() const {
  return fmt::format("topic '{}' partition {} waits at offset {}: {}", topic_, id_, next_, reason_);
}

void KafkaPartition::ShowLag(std::optional<uint64_t> end, std::optional<uint64_t> group) {
  if (end) end_ = std::max(end_, *end);
  const auto behind = [&](uint64_t position) {
    return static_cast<double>(end_ > position ? end_ - position : 0);
  };
  // Behind the last record there may be marks of transactions, which nobody ever hands on.
  lag_read_.Set(ended() ? 0 : behind(next_));
  if (store_) lag_store_.Set(behind(*store_));
  if (group) lag_group_.Set(behind(*group));
}

}  // namespace tacit::stream
