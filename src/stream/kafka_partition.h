#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "event/envelope.h"
#include "event/raw_records.h"
#include "metrics/registry.h"
#include "stream/kafka_client.h"
#include "stream/kafka_marks.h"

namespace tacit::stream {

// One partition as it is read: what was fetched of it and is not yet handed on, where it is, and
// whether it has to wait. Keeps its memory. Private to the room.
class KafkaPartition {
 public:
  // `metrics` may be null.
  KafkaPartition(int32_t id, const std::string& topic, uint32_t max_record_bytes,
                 metrics::Registry* metrics);
  ~KafkaPartition() { DropFetched(); }
  KafkaPartition(const KafkaPartition&) = delete;
  KafkaPartition& operator=(const KafkaPartition&) = delete;

  int32_t id() const { return id_; }
  // The next offset to hand on.
  uint64_t next() const { return next_; }

  // Goes on at `offset`; so many offsets before it are lost.
  void Start(uint64_t offset, uint64_t lost);
  // Takes the message over. Messages come in the order of their offsets.
  void Hold(rd_kafka_message_t* message);
  void DropFetched();
  // There is nothing behind what was fetched so far; the next message would have this offset.
  void EndsAt(uint64_t offset);
  bool ended() const { return ended_ && head_ == held_.size(); }
  // The clock's mark is due, if anything has come since the last one.
  void Tick() { tick_ = next_ != tick_from_; }

  bool Ready(Clock::TimePoint now) const;
  // Fills a cleared frame with marks that are due, or else with the next run of consecutive
  // offsets; tells the last record of it. Nothing where all there was lies before `next`, or has
  // to wait.
  std::optional<RecordMark> Take(Clock::TimePoint now, event::Envelope* envelope,
                                 event::RawRecords* records);

  // Whether a message that cannot be opened yet stands in the way, and which.
  bool waiting() const { return waiting_; }
  std::string wait() const;
  bool paused() const { return paused_; }
  void SetPaused(bool paused, bool all) {
    paused_ = paused;
    alone_ = paused && !all;
  }
  // Whether the client is to fetch nothing more of it.
  bool held_back() const { return waiting_ || alone_; }

  // What the store, and the group for others to see, have got to.
  void Committed(uint64_t offset) { store_ = offset; }
  void ShowLag(std::optional<uint64_t> end, std::optional<uint64_t> group);
  // Records known to be there and not handed on.
  uint64_t ahead() const { return end_ > next_ ? end_ - next_ : 0; }

 private:
  // False: it has to wait. Otherwise the message is a record, maybe a faulty one.
  bool Append(const rd_kafka_message_t& message, event::Envelope* envelope,
              event::RawRecords* records);
  event::Envelope::Outcome OpenValue(const rd_kafka_message_t& message, event::Envelope* envelope,
                                     std::string_view* payload);
  void Wait(Clock::TimePoint now);

  const int32_t id_;
  const std::string topic_;
  const uint32_t max_record_bytes_;
  uint64_t next_ = 0;
  uint64_t end_ = 0;  // as far as is known
  std::vector<rd_kafka_message_t*> held_;
  size_t head_ = 0;  // those before it are handed on
  bool ended_ = false, lost_ = false, tick_ = false;
  uint64_t tick_from_ = 0;

  bool paused_ = false, alone_ = false, waiting_ = false;
  Clock::TimePoint retry_at_{};
  Clock::Duration backoff_{};
  std::string reason_;  // of the wait, or of the last fault
  std::vector<event::MessageHeader> headers_;

  std::optional<uint64_t> store_;
  metrics::Gauge lag_read_, lag_store_, lag_group_;
};

}  // namespace tacit::stream
