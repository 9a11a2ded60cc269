#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "event/envelope.h"
#include "event/raw_records.h"
#include "metrics/registry.h"
#include "stream/kafka/fetcher.h"
#include "stream/kafka/identity.h"

namespace tacit::stream {

// The options that all partitions of a topic share.
struct KafkaPartitionOptions {
  std::string topic;
  uint32_t max_record_bytes = 1 << 20;   // a longer message is a faulty record
  metrics::Registry* metrics = nullptr;  // must outlive the partitions; null if none
};

// A partition being read: the fetched messages that are not yet handed on, its position, and
// whether it has to wait. Keeps its memory. Private to the room.
class KafkaPartition {
 public:
  KafkaPartition(int32_t id, const KafkaPartitionOptions& options);
  KafkaPartition(const KafkaPartition&) = delete;
  KafkaPartition& operator=(const KafkaPartition&) = delete;

  int32_t id() const { return id_; }
  // The next offset to hand on.
  uint64_t next() const { return next_; }

  // Continues at `offset`; `lost` offsets before it are lost.
  void Start(uint64_t offset, uint64_t lost);
  // Passes over offsets that have no record; `offset` is the next one to hand on.
  void SkipTo(uint64_t offset) { next_ = std::max(next_, offset); }
  // Leaves the offsets before this one to others. The fetcher stays where it is, until the next
  // Start.
  void LeaveUntil(uint64_t offset);
  bool left() const { return left_; }
  // Takes over fetched messages, in the order of offsets.
  void Hold(std::vector<FetchedMessage>* messages);
  void DropFetched();
  // The next record, if it was fetched; and the offset before which there is none, as far as known.
  const FetchedMessage* Head();
  uint64_t empty_until() const { return empty_until_; }
  size_t held() const { return held_.size() - head_; }
  // The same with the places of messages that are handed on.
  size_t places() const { return held_.size(); }
  // True if a frame can be filled without fetching more.
  bool HoldsFrame() const;

  // Makes a tick due at `offset`, unless no record has come since the last one.
  void TickAt(uint64_t offset);
  bool has_cuts() const { return lost_ || tick_; }
  // Fills a cleared frame with the cuts that are due.
  void TakeCuts(event::RawRecords* records);
  // Fills a frame, cleared or taken before, with the next run of consecutive offsets below `until`,
  // and returns its last record. Returns nullopt if no record was added: none is held,
  // or the first one has to wait.
  std::optional<LastRecord> Take(event::Envelope* envelope, uint64_t until,
                                 event::RawRecords* records);
  // Begins to look up the schemas of the messages that are held. Returns false if no more can be
  // looked up at a time.
  bool LookAhead(event::Envelope* envelope);

  // True while a message whose schema is not known yet blocks the partition; wait() says which and
  // why.
  bool waiting() const { return waiting_; }
  std::string wait() const;
  bool paused() const { return paused_; }
  void SetPaused(bool paused) { paused_ = paused; }

  // The offsets committed in the store, and in the group for others to see.
  void Committed(uint64_t offset) { store_ = offset; }
  void ShowLag(std::optional<uint64_t> end, std::optional<uint64_t> group);
  // Number of records known to exist and not handed on.
  uint64_t ahead() const { return end_ > next_ ? end_ - next_ : 0; }

 private:
  // Returns false if the message has to wait. Otherwise it becomes a record, maybe a faulty one.
  bool Append(const FetchedMessage& message, event::Envelope* envelope, event::RawRecords* records);
  event::Envelope::Outcome OpenValue(const FetchedMessage& message, event::Envelope* envelope,
                                     std::string_view* payload);
  // The value and headers; the headers are views of headers_.
  event::Message MessageOf(const FetchedMessage& message);
  void StartFrame(uint64_t offset, event::RawRecords* records) const;
  // Gives a message back to the client.
  void Release(FetchedMessage* message);

  const int32_t id_;
  const KafkaPartitionOptions& options_;
  uint64_t next_ = 0;
  uint64_t end_ = 0;          // as far as is known
  uint64_t empty_until_ = 0;  // no record is between `next_` and here
  std::vector<FetchedMessage> held_;
  size_t head_ = 0;        // messages before it are handed on
  size_t held_bytes_ = 0;  // of the values from there on
  bool started_ = false, lost_ = false, tick_ = false, left_ = false;
  uint64_t tick_at_ = 0, tick_from_ = 0;

  bool paused_ = false, waiting_ = false;
  std::string reason_;                            // reason of the wait, or of the last fault
  event::BadPart part_ = event::BadPart::kValue;  // of the last fault
  std::vector<event::MessageHeader> headers_;

  std::optional<uint64_t> store_;
  metrics::Gauge lag_read_, lag_store_, lag_group_;
};

}  // namespace tacit::stream
