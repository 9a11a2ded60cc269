#include "stream/kafka/range_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"

namespace tacit::stream {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Brokers answer within milliseconds, or after an election.
constexpr Clock::Duration kMissingIsTold = std::chrono::seconds(10);

}  // namespace

KafkaPartition* KafkaRangeReader::Find(int32_t partition) const {
  // Partitions are numbered from 0 and are mostly all there.
  const auto at = static_cast<size_t>(partition);
  if (at < partitions_.size() && partitions_[at]->id() == partition) return partitions_[at].get();
  for (const auto& one : partitions_)
    if (one->id() == partition) return one.get();
  return nullptr;
}

KafkaPartition& KafkaRangeReader::Start(const PartitionStart& start) {
  KafkaPartition* partition = Find(start.partition);
  if (partition == nullptr) {
    const auto at = std::ranges::lower_bound(partitions_, start.partition, {},
                                             [](const auto& one) { return one->id(); });
    partition =
        partitions_.insert(at, std::make_unique<KafkaPartition>(start.partition, options_))->get();
  }
  partition->Start(start.offset, start.lost);
  return *partition;
}

void KafkaRangeReader::DropFetched() {
  fetched_.clear();
  for (const auto& partition : partitions_) partition->DropFetched();
  missing_.reset();
}

void KafkaRangeReader::Clear() {
  partitions_.clear();
  missing_.reset();
}

std::string KafkaRangeReader::stall() const {
  if (const std::string trouble = envelope_ == nullptr ? "" : envelope_->Trouble();
      !trouble.empty()) {
    for (const auto& partition : partitions_)
      if (partition->waiting()) return partition->wait();
    return fmt::format("topic '{}': {}", options_.topic, trouble);
  }
  if (!missing_ || clock_.Now() - missing_since_ < kMissingIsTold) return "";
  return fmt::format(
      "topic '{}' partition {}: there are records from offset {} on, and the brokers do not "
      "deliver them; all other partitions wait for them",
      options_.topic, *missing_, Find(*missing_)->next());
}

Status KafkaRangeReader::Begin(MessageFetcher& fetcher, const OffsetRange& range) {
  KafkaPartition* partition = Find(range.partition);
  TACIT_CHECK(partition != nullptr, "a range of a partition that is not read");
  range_ = range;
  records_ = 0;
  if (partition->next() == range.begin && !partition->left()) return {};
  TACIT_RETURN_IF_ERROR(fetcher.Seek(range.partition, range.begin));
  partition->DropFetched();
  partition->Start(range.begin, /*lost=*/0);
  return {};
}

Result<KafkaRangeReader::Outcome> KafkaRangeReader::Take(MessageFetcher& fetcher,
                                                         milliseconds timeout,
                                                         event::RawRecords* records,
                                                         std::optional<LastRecord>* last) {
  const Deadline deadline = Steady::now() + timeout;
  KafkaPartition& partition = *Find(range_.partition);
  while (partition.next() < range_.end) {
    const FetchedMessage* head = partition.Head();
    if ((head == nullptr ? partition.empty_until() : head->offset) >= range_.end) break;
    bool goes_on = false;
    if (head == nullptr) {
      TACIT_ASSIGN(goes_on, Look(fetcher, range_.partition, deadline));
    } else {
      TACIT_ASSIGN(goes_on,
                   TakeBelow(fetcher, range_.partition, range_.end, deadline, records, last));
      records_ += records->size();
      if (records->size() > 0) return Outcome::kRecords;
    }
    if (!goes_on) return Outcome::kNothing;
  }
  partition.SkipTo(range_.end);
  return Outcome::kDone;
}

Result<bool> KafkaRangeReader::Look(MessageFetcher& fetcher, int32_t partition, Deadline deadline) {
  // Fetches one message, for a head: messages in the client's queue count against its limit, those
  // held here do not.
  TACIT_RETURN_IF_ERROR(fetcher.Fetch(partition, 1, Left(deadline), &fetched_));
  if (fetched_.empty()) {
    if (missing_ != partition) missing_since_ = clock_.Now();
    missing_ = partition;
    return false;
  }
  missing_.reset();
  Find(partition)->Hold(&fetched_);
  return true;
}

Result<bool> KafkaRangeReader::TakeBelow(MessageFetcher& fetcher, int32_t id, uint64_t until,
                                         Deadline deadline, event::RawRecords* records,
                                         std::optional<LastRecord>* last) {
  KafkaPartition& partition = *Find(id);
  if (partition.paused()) {
    std::this_thread::sleep_for(Left(deadline));
    return false;
  }
  const uint64_t missing = until - partition.next();
  // Messages in the client's queue count against its limit, those held here do not.
  if (partition.held() < missing && !partition.HoldsFrame()) {
    TACIT_RETURN_IF_ERROR(
        fetcher.Fetch(id, missing - partition.held(), milliseconds(0), &fetched_));
    partition.Hold(&fetched_);
  }
  while (true) {
    if (const auto taken = partition.Take(envelope_, until, records)) *last = taken;
    if (!partition.waiting()) return true;
    LookAhead(partition);
    if (Left(deadline) <= milliseconds(0)) return false;
    envelope_->Await(Left(deadline));
  }
}

void KafkaRangeReader::LookAhead(KafkaPartition& first) {
  if (!first.LookAhead(envelope_)) return;
  for (const auto& partition : partitions_)
    if (partition.get() != &first && !partition->LookAhead(envelope_)) return;
}

}  // namespace tacit::stream
