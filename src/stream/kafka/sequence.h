#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "event/envelope.h"
#include "event/raw_records.h"
#include "stream/kafka/fetcher.h"
#include "stream/kafka/partition.h"
#include "stream/kafka/plan.h"
#include "stream/kafka/range_reader.h"
#include "stream/kafka/rounds.h"

namespace tacit::stream {

// The partitions of a topic as one sequence of frames: in turns (KafkaTurns), or period after
// period (KafkaPeriods). Not thread-safe; private to the room.
class KafkaSequence {
 public:
  struct Parts {  // all references must outlive the sequence
    KafkaPartitionOptions options;
    const Clock& clock;
    event::Envelope* envelope;  // may be null; then values are payloads
    RoundQueue& rounds;
  };
  explicit KafkaSequence(Parts parts)
      : reader_(std::move(parts.options), parts.clock, parts.envelope), rounds_(parts.rounds) {}
  virtual ~KafkaSequence() = default;

  // Continues reading a partition at this start.
  virtual void Start(const PartitionStart& start) = 0;
  // Drops the fetched messages; positions, rounds and what is under way stay.
  virtual void DropFetched() { reader_.DropFetched(); }
  // Forgets rounds that were begun or closed, because their ends are no longer true.
  virtual void DropRounds() = 0;
  virtual void Clear() = 0;
  // After Clear: the positions from which reading will begin.
  virtual void SetFirst(std::span<const PartitionOffset>) {}

  const std::vector<std::unique_ptr<KafkaPartition>>& partitions() const {
    return reader_.partitions();
  }
  KafkaPartition* Find(int32_t partition) const { return reader_.Find(partition); }

  // Fills a cleared frame with cuts or records, and returns the last record in `*last`;
  // waits up to `timeout` for the next round or the fetcher. Returns false if there is nothing yet.
  // Fails if the fetcher has to be opened anew.
  virtual Result<bool> Take(MessageFetcher& fetcher, std::chrono::milliseconds timeout,
                            event::RawRecords* records, std::optional<LastRecord>* last) = 0;
  // Returns true if all closed rounds have been handed on.
  virtual bool idle() const = 0;
  // Returns why existing records do not come, for the operator; empty if no problem.
  std::string stall() const { return reader_.stall(); }

 protected:
  using Deadline = KafkaRangeReader::Deadline;

  // Takes the next round off the queue, its new partitions added first. Returns nullopt if there is
  // none yet.
  Result<std::optional<Round>> NextRound(MessageFetcher& fetcher, Deadline deadline);
  bool HasRound() const { return round_ || !rounds_.empty(); }
  void ForgetRounds() {
    rounds_.Clear();
    round_.reset();
  }

  KafkaRangeReader reader_;

 private:
  RoundQueue& rounds_;
  std::optional<Round> round_;  // taken from the queue but not begun: a partition is missing
};

}  // namespace tacit::stream
