#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"
#include "event/raw_records.h"
#include "stream/kafka/order.h"
#include "stream/kafka/sequence.h"

namespace tacit::stream {

// Each frame is a piece of the turn of the partition that TurnOrder names, round after round. A
// partition keeps its turn until its records are fetched, until it is no longer paused, and until
// the book of schemas has a verdict on its record. No partition overtakes it meanwhile, so none of
// these waits changes the order. Not thread-safe; private to the room.
class KafkaTurns final : public KafkaSequence {
 public:
  using KafkaSequence::KafkaSequence;

  void Start(const PartitionStart& start) override;
  void DropFetched() override;  // the turn under way stays
  void DropRounds() override;
  void Clear() override;
  // Partitions of which something is read before all others (TurnOrder::SetFirst).
  void SetFirst(std::span<const PartitionOffset> positions) override;
  Result<bool> Take(MessageFetcher& fetcher, std::chrono::milliseconds timeout,
                    event::RawRecords* records, std::optional<LastRecord>* last) override;
  bool idle() const override { return over_ && !HasRound(); }

 private:
  bool TakeCuts(event::RawRecords* records);
  // Reports a partition's place to the order.
  void Tell(KafkaPartition& partition);

  TurnOrder order_;
  bool over_ = true;  // whether the last begun round is over
};

}  // namespace tacit::stream
