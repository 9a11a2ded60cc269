#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "event/envelope.h"
#include "event/raw_records.h"
#include "stream/kafka/fetcher.h"
#include "stream/kafka/order.h"
#include "stream/kafka/partition.h"
#include "stream/kafka/plan.h"
#include "stream/kafka/range_reader.h"
#include "stream/kafka/rounds.h"

namespace tacit::stream {

// The partitions of a topic as one sequence of frames. Each frame is a piece of the turn of the
// partition that TurnOrder names, round after round. A partition keeps its turn until its records
// are fetched, until it is no longer paused, and until the book of schemas has a verdict on its
// record. No partition overtakes it meanwhile, so none of these waits changes the
// order. Not thread-safe; private to the room.
class KafkaTurns {
 public:
  // All references must outlive it. `envelope` may be null; then values are payloads.
  KafkaTurns(KafkaPartitionOptions options, const Clock& clock, event::Envelope* envelope,
             RoundQueue& rounds)
      : reader_(std::move(options), clock, envelope), rounds_(rounds) {}

  // Continues reading a partition at this start.
  void Start(const PartitionStart& start);
  // Drops the fetched messages; positions, rounds and the turn under way stay.
  void DropFetched();
  // Forgets rounds that were begun or closed, because their ends are no longer true.
  void DropRounds();
  void Clear();
  // After Clear: partitions of which something is read before all others (TurnOrder::SetFirst).
  void SetFirst(std::span<const PartitionOffset> positions);

  const std::vector<std::unique_ptr<KafkaPartition>>& partitions() const {
    return reader_.partitions();
  }
  KafkaPartition* Find(int32_t partition) const { return reader_.Find(partition); }

  // Fills a cleared frame with cuts or records, and returns the last record in `*last`;
  // waits up to `timeout` for the next round or the fetcher. Returns false if there is nothing yet.
  // Fails if the fetcher has to be opened anew.
  Result<bool> Take(MessageFetcher& fetcher, std::chrono::milliseconds timeout,
                    event::RawRecords* records, std::optional<LastRecord>* last);
  // Returns true if all closed rounds have been handed on.
  bool idle() const;
  // Returns why existing records do not come, for the operator; empty if no problem.
  std::string stall() const { return reader_.stall(); }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  bool TakeCuts(event::RawRecords* records);
  // Begins the next round, its new partitions first. Returns false if there is none yet.
  Result<bool> BeginRound(MessageFetcher& fetcher, Deadline deadline);
  // Reports a partition's place to the order.
  void Tell(KafkaPartition& partition);

  KafkaRangeReader reader_;
  RoundQueue& rounds_;
  TurnOrder order_;
  std::optional<Round> round_;  // taken from the queue but not begun: a partition is missing
  bool over_ = true;            // whether the last begun round is over
};

}  // namespace tacit::stream
