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
      : options_(std::move(options)), clock_(clock), envelope_(envelope), rounds_(rounds) {}

  // Continues reading a partition at this start.
  void Start(const PartitionStart& start);
  // Drops the fetched messages; positions, rounds and the turn under way stay.
  void DropFetched();
  // Forgets rounds that were begun or closed, because their ends are no longer true.
  void DropRounds();
  void Clear();
  // After Clear: partitions of which something is read before all others (TurnOrder::SetFirst).
  void SetFirst(std::span<const PartitionOffset> positions);

  const std::vector<std::unique_ptr<KafkaPartition>>& partitions() const { return partitions_; }
  KafkaPartition* Find(int32_t partition) const;

  // Fills a cleared frame with cuts or records, and returns the last record in `*last`;
  // waits up to `timeout` for the next round or the fetcher. Returns false if there is nothing yet.
  // Fails if the fetcher has to be opened anew.
  Result<bool> Take(MessageFetcher& fetcher, std::chrono::milliseconds timeout,
                    event::RawRecords* records, std::optional<LastRecord>* last);
  // Returns true if all closed rounds have been handed on.
  bool idle() const;
  // Returns why existing records do not come, for the operator; empty if no problem.
  std::string stall() const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  bool TakeCuts(event::RawRecords* records);
  // Begins the next round, its new partitions first. Returns false if there is none yet.
  Result<bool> BeginRound(MessageFetcher& fetcher, Deadline deadline);
  // Fetches what is missing of a partition. Returns false if nothing has come.
  Result<bool> Look(MessageFetcher& fetcher, int32_t partition, Deadline deadline);
  Result<bool> TakeTurn(MessageFetcher& fetcher, const TurnOrder::Turn& turn, Deadline deadline,
                        event::RawRecords* records, std::optional<LastRecord>* last);
  // Looks up schemas of all fetched records ahead, those of this partition first.
  void LookAhead(KafkaPartition& first);
  // Reports a partition's place to the order.
  void Tell(KafkaPartition& partition);

  const KafkaPartitionOptions options_;
  const Clock& clock_;
  event::Envelope* const envelope_;
  RoundQueue& rounds_;
  TurnOrder order_;
  std::vector<std::unique_ptr<KafkaPartition>> partitions_;  // ascending
  std::optional<Round> round_;  // taken from the queue but not begun: a partition is missing
  bool over_ = true;            // whether the last begun round is over
  std::vector<FetchedMessage> fetched_;
  // The partition whose records are known to exist and do not come, and since when.
  std::optional<int32_t> missing_;
  Clock::TimePoint missing_since_{};
};

}  // namespace tacit::stream
