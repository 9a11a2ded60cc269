#include "stream/kafka/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "metrics/families.h"

namespace tacit::stream {
namespace {

using event::Envelope;
using event::PublicCut;

// The size of a frame only decides how much memory is held at a time: steps are cut by offsets, and
// a partition's turn does not end with a frame.
constexpr size_t kRecordsPerFrame = 4096;
constexpr size_t kBytesPerFrame = 1 << 20;

}  // namespace

KafkaPartition::KafkaPartition(int32_t id, const KafkaPartitionOptions& options)
    : id_(id), options_(options) {
  if (options.metrics == nullptr) return;
  const auto gauge = [&](const char* position) {
    return options.metrics->AddGauge(
        "tacit_source_lag_records",
        {{"topic", options.topic}, {"partition", std::to_string(id)}, {"position", position}});
  };
  lag_read_ = gauge("read");
  lag_store_ = gauge("store");
  lag_group_ = gauge("group");
}

void KafkaPartition::Start(uint64_t offset, uint64_t lost) {
  next_ = offset;
  lost_ = lost_ || lost > 0;
  empty_until_ = 0;
  waiting_ = left_ = false;
  if (!std::exchange(started_, true)) tick_from_ = offset;
}

void KafkaPartition::LeaveUntil(uint64_t offset) {
  if (next_ == offset) return;
  DropFetched();
  next_ = offset;
  left_ = true;
}

void KafkaPartition::Hold(std::vector<FetchedMessage>* messages) {
  // Places go in large pieces, so that each message is moved once on average. To wait until none is
  // held would be for ever where offsets have gaps.
  if (head_ * 2 >= held_.size()) {
    held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
  for (FetchedMessage& message : *messages) {
    end_ = std::max(end_, message.offset + (message.at_end ? 0 : 1));
    if (message.at_end) {
      empty_until_ = std::max(empty_until_, message.offset);
    } else {
      held_bytes_ += message.value.size();
      held_.push_back(std::move(message));
    }
  }
  messages->clear();
}

void KafkaPartition::DropFetched() {
  held_.clear();
  head_ = held_bytes_ = 0;
  empty_until_ = 0;
}

bool KafkaPartition::HoldsFrame() const {
  return held() >= kRecordsPerFrame || held_bytes_ >= kBytesPerFrame;
}

void KafkaPartition::Release(FetchedMessage* message) {
  held_bytes_ -= message->value.size();
  message->message.reset();
}

const FetchedMessage* KafkaPartition::Head() {
  for (; head_ < held_.size(); ++head_) {
    if (held_[head_].offset >= next_) return &held_[head_];
    Release(&held_[head_]);
  }
  return nullptr;
}

void KafkaPartition::StartFrame(uint64_t offset, event::RawRecords* records) const {
  records->partition = id_;
  records->first_offset = offset;
  records->origin = options_.topic;
}

void KafkaPartition::TickAt(uint64_t offset) {
  if (offset == tick_from_) return;
  tick_ = true;
  tick_at_ = std::max(offset, next_);
}

// Offsets without a record may follow the last record of a round; a tick at the round's end comes
// after those too.
void KafkaPartition::TakeCuts(event::RawRecords* records) {
  if (std::exchange(lost_, false)) {
    StartFrame(next_, records);
    records->cuts.push_back({PublicCut::Kind::kLost, next_, ""});
    return;
  }
  tick_ = false;
  next_ = std::max(next_, tick_at_);
  tick_from_ = next_;
  StartFrame(next_, records);
  records->cuts.push_back({PublicCut::Kind::kClockTick, next_, ""});
}

std::optional<LastRecord> KafkaPartition::Take(Envelope* envelope, uint64_t until,
                                               event::RawRecords* records) {
  const FetchedMessage* message = Head();
  if (message == nullptr) return std::nullopt;
  if (records->size() == 0) StartFrame(message->offset, records);
  waiting_ = false;
  std::optional<size_t> last;
  for (; head_ < held_.size(); ++head_) {
    message = &held_[head_];
    if (message->offset >= until || message->offset != records->end_offset()) break;
    if (records->size() == kRecordsPerFrame || records->bytes.size() >= kBytesPerFrame) break;
    if (!Append(*message, envelope, records)) break;
    next_ = message->offset + 1;
    if (last) Release(&held_[*last]);  // the last one is used below
    last = head_;
  }
  if (!last) return std::nullopt;
  const LastRecord record = LastRecordOf(held_[*last]);
  Release(&held_[*last]);
  return record;
}

bool KafkaPartition::LookAhead(Envelope* envelope) {
  for (size_t i = head_; i < held_.size(); ++i)
    if (held_[i].value.size() <= options_.max_record_bytes &&
        !envelope->LookAhead(MessageOf(held_[i])))
      return false;
  return true;
}

bool KafkaPartition::Append(const FetchedMessage& message, Envelope* envelope,
                            event::RawRecords* records) {
  std::string_view payload;
  const auto outcome = OpenValue(message, envelope, &payload);
  waiting_ = outcome == Envelope::Outcome::kWait;
  if (waiting_) return false;
  if (outcome == Envelope::Outcome::kFault) {
    records->faults.push_back({static_cast<uint32_t>(records->size()), reason_, part_});
  } else {
    records->bytes.append(payload);
  }
  const bool named = envelope != nullptr && outcome == Envelope::Outcome::kPayload;
  const std::string_view event_id = named ? envelope->event_id() : std::string_view();
  // Most sources have no record with an event id.
  if (!event_id.empty() || !records->event_id.empty()) {
    while (records->event_id.size() < records->size()) records->event_id.Append("");
    records->event_id.Append(event_id);
  }
  records->end.push_back(static_cast<uint32_t>(records->bytes.size()));
  records->timestamp_ms.push_back(std::max<int64_t>(message.timestamp_ms, 0));
  return true;
}

Envelope::Outcome KafkaPartition::OpenValue(const FetchedMessage& message, Envelope* envelope,
                                            std::string_view* payload) {
  *payload = message.value;
  part_ = message.null ? event::BadPart::kValue : event::BadPart::kSchema;
  if (payload->size() > options_.max_record_bytes) {
    part_ = event::BadPart::kValue;
    reason_ = fmt::format("a value of {} bytes, more than source.max_record_bytes {}",
                          payload->size(), options_.max_record_bytes);
    return Envelope::Outcome::kFault;
  }
  if (envelope == nullptr) {
    if (!message.null) return Envelope::Outcome::kPayload;
    reason_ = "null value";
    return Envelope::Outcome::kFault;
  }
  return envelope->Open(MessageOf(message), payload, &reason_);
}

event::Message KafkaPartition::MessageOf(const FetchedMessage& message) {
  headers_.clear();
  if (message.message != nullptr) ReadHeaders(*message.message, &headers_);
  return {message.value, message.null, headers_};
}

std::string KafkaPartition::wait() const {
  return fmt::format("topic '{}' partition {} waits at offset {}, and all others with it: {}",
                     options_.topic, id_, next_, reason_);
}

void KafkaPartition::ShowLag(std::optional<uint64_t> end, std::optional<uint64_t> group) {
  if (end) end_ = std::max(end_, *end);
  const auto behind = [&](uint64_t position) {
    return static_cast<double>(end_ > position ? end_ - position : 0);
  };
  // Markers of transactions may follow the last record; librdkafka never delivers them.
  lag_read_.Set(held() == 0 && empty_until_ >= end_ ? 0 : behind(next_));
  if (store_) lag_store_.Set(behind(*store_));
  if (group) lag_group_.Set(behind(*group));
}

}  // namespace tacit::stream
