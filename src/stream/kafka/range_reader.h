#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "event/envelope.h"
#include "event/raw_records.h"
#include "stream/kafka/fetcher.h"
#include "stream/kafka/partition.h"
#include "stream/kafka/plan.h"

namespace tacit::stream {

// The time until a deadline, rounded up; 0 once it has passed.
inline std::chrono::milliseconds Left(std::chrono::steady_clock::time_point deadline) {
  return std::max(std::chrono::milliseconds(0), std::chrono::ceil<std::chrono::milliseconds>(
                                                    deadline - std::chrono::steady_clock::now()));
}

// The partitions of a topic, read where the caller says: in ranges of offsets that may lie
// anywhere, or piece by piece, as KafkaTurns decides. A range that begins where its partition was
// left is read on from what was fetched; before any other one the fetcher jumps. Not thread-safe;
// private to the room.
class KafkaRangeReader {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  enum class Outcome {
    kRecords,
    kNothing,  // nothing has come in time
    kDone,     // the range is read
  };

  // All references must outlive it. `envelope` may be null; then values are payloads.
  KafkaRangeReader(KafkaPartitionOptions options, const Clock& clock, event::Envelope* envelope)
      : options_(std::move(options)), clock_(clock), envelope_(envelope) {}

  // Adds a partition, or continues one, at this start. The fetcher reads it from there.
  KafkaPartition& Start(const PartitionStart& start);
  // Drops the fetched messages; the positions and the range stay.
  void DropFetched();
  void Clear();

  const std::string& topic() const { return options_.topic; }
  const std::vector<std::unique_ptr<KafkaPartition>>& partitions() const { return partitions_; }
  KafkaPartition* Find(int32_t partition) const;

  // Begins a range of a partition that was started. The range's end must be one that the partition
  // has had.
  Status Begin(MessageFetcher& fetcher, const OffsetRange& range);
  // Fills a cleared frame with the next records of the range, and returns the last one in `*last`.
  // Fails if the fetcher has to be opened anew.
  Result<Outcome> Take(MessageFetcher& fetcher, std::chrono::milliseconds timeout,
                       event::RawRecords* records, std::optional<LastRecord>* last);
  // The offsets of the range without a record, once it is read: markers of transactions, aborted
  // records, records that compaction took.
  uint64_t empty() const { return range_.size() - records_; }

  // Fetches the record that comes next in a partition, or learns that none is before some offset.
  // Returns false if nothing has come.
  Result<bool> Look(MessageFetcher& fetcher, int32_t partition, Deadline deadline);
  // Fills a frame with records of a partition below `until`. REQUIRES that Look has found one
  // there. Returns false if the partition has to wait: it is paused, or a schema is not known yet.
  Result<bool> TakeBelow(MessageFetcher& fetcher, int32_t partition, uint64_t until,
                         Deadline deadline, event::RawRecords* records,
                         std::optional<LastRecord>* last);

  // Returns why existing records do not come, for the operator; empty if no problem.
  std::string stall() const;

 private:
  // Looks up schemas of all fetched records ahead, those of this partition first.
  void LookAhead(KafkaPartition& first);

  const KafkaPartitionOptions options_;
  const Clock& clock_;
  event::Envelope* const envelope_;
  std::vector<std::unique_ptr<KafkaPartition>> partitions_;  // ascending
  std::vector<FetchedMessage> fetched_;
  OffsetRange range_;
  uint64_t records_ = 0;  // of the range, taken
  // The partition whose records are known to exist and do not come, and since when.
  std::optional<int32_t> missing_;
  Clock::TimePoint missing_since_{};
};

}  // namespace tacit::stream
