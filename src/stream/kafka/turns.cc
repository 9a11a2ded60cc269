#include "stream/kafka/turns.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace tacit::stream {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Brokers answer within milliseconds, or after an election.
constexpr Clock::Duration kMissingIsTold = std::chrono::seconds(10);

milliseconds Left(Steady::time_point deadline) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - Steady::now()));
}

}  // namespace

KafkaPartition* KafkaTurns::Find(int32_t partition) const {
  // Partitions are numbered from 0 and are mostly all there.
  const auto at = static_cast<size_t>(partition);
  if (at < partitions_.size() && partitions_[at]->id() == partition) return partitions_[at].get();
  for (const auto& one : partitions_)
    if (one->id() == partition) return one.get();
  return nullptr;
}

void KafkaTurns::Tell(KafkaPartition& partition) {
  const FetchedMessage* head = partition.Head();
  TurnOrder::Place place{.partition = partition.id(),
                         .next = partition.next(),
                         .head = std::nullopt,
                         .empty_until = partition.empty_until()};
  if (head != nullptr) place.head = {head->offset, head->timestamp_ms};
  order_.Set(place);
}

void KafkaTurns::Start(const PartitionStart& start) {
  KafkaPartition* partition = Find(start.partition);
  if (partition == nullptr) {
    const auto at = std::ranges::lower_bound(partitions_, start.partition, {},
                                             [](const auto& one) { return one->id(); });
    partition =
        partitions_.insert(at, std::make_unique<KafkaPartition>(start.partition, options_))->get();
  }
  partition->Start(start.offset, start.lost);
  Tell(*partition);
}

void KafkaTurns::DropFetched() {
  fetched_.clear();
  for (const auto& partition : partitions_) {
    partition->DropFetched();
    Tell(*partition);
  }
  missing_.reset();
}

void KafkaTurns::DropRounds() {
  rounds_.Clear();
  round_.reset();
  order_.DropRound();
}

void KafkaTurns::Clear() {
  DropRounds();
  order_.Clear();
  partitions_.clear();
  missing_.reset();
  over_ = true;
}

void KafkaTurns::SetFirst(std::span<const PartitionOffset> positions) {
  for (const PartitionOffset& position : positions)
    if (position.first_until > 0) order_.SetFirst(position.partition, position.first_until);
}

bool KafkaTurns::idle() const { return over_ && !round_ && rounds_.empty(); }

std::string KafkaTurns::stall() const {
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

Result<bool> KafkaTurns::Take(MessageFetcher& fetcher, milliseconds timeout,
                              event::RawRecords* records, std::optional<LastRecord>* last) {
  const Deadline deadline = Steady::now() + timeout;
  while (true) {
    if (TakeCuts(records)) return true;
    const TurnOrder::Turn turn = order_.Next();
    bool goes_on = false;
    switch (turn.kind) {
      case TurnOrder::Turn::Kind::kNoRound: {
        if (!std::exchange(over_, true) && order_.tick())
          for (const auto& partition : partitions_) partition->TickAt(order_.End(partition->id()));
        order_.ClearTick();
        if (TakeCuts(records)) return true;
        TACIT_ASSIGN(goes_on, BeginRound(fetcher, deadline));
        break;
      }
      case TurnOrder::Turn::Kind::kLook: {
        TACIT_ASSIGN(goes_on, Look(fetcher, turn.partition, deadline));
        break;
      }
      case TurnOrder::Turn::Kind::kTake: {
        TACIT_ASSIGN(goes_on, TakeTurn(fetcher, turn, deadline, records, last));
        if (records->size() > 0) return true;
        break;
      }
    }
    if (!goes_on) return false;
  }
}

bool KafkaTurns::TakeCuts(event::RawRecords* records) {
  for (const auto& partition : partitions_) {
    if (!partition->has_cuts()) continue;
    partition->TakeCuts(records);
    Tell(*partition);
    return true;
  }
  return false;
}

Result<bool> KafkaTurns::BeginRound(MessageFetcher& fetcher, Deadline deadline) {
  if (!round_) round_ = rounds_.Pop();
  if (!round_) return rounds_.WaitFor(Left(deadline));
  for (const PartitionEnd& moved : round_->moved) {
    if (Find(moved.partition) != nullptr) continue;
    const auto begin = fetcher.Add(moved.partition);
    if (!begin && begin.error().code != ErrorCode::kUnavailable) return Fail(begin.error());
    if (!begin) {
      std::this_thread::sleep_for(Left(deadline));
      return false;
    }
    Start({.partition = moved.partition, .offset = *begin});
    spdlog::info("topic '{}' has a new partition {}: it is read from offset {}", options_.topic,
                 moved.partition, *begin);
  }
  order_.Begin(*std::exchange(round_, std::nullopt));
  over_ = false;
  return true;
}

Result<bool> KafkaTurns::Look(MessageFetcher& fetcher, int32_t partition, Deadline deadline) {
  KafkaPartition& looked_at = *Find(partition);
  // Fetches one message, for a head: messages in the client's queue count against its limit, those
  // held here do not.
  TACIT_RETURN_IF_ERROR(fetcher.Fetch(partition, 1, Left(deadline), &fetched_));
  if (fetched_.empty()) {
    if (missing_ != partition) missing_since_ = clock_.Now();
    missing_ = partition;
    return false;
  }
  missing_.reset();
  looked_at.Hold(&fetched_);
  Tell(looked_at);
  return true;
}

Result<bool> KafkaTurns::TakeTurn(MessageFetcher& fetcher, const TurnOrder::Turn& turn,
                                  Deadline deadline, event::RawRecords* records,
                                  std::optional<LastRecord>* last) {
  KafkaPartition& partition = *Find(turn.partition);
  if (partition.paused()) {
    std::this_thread::sleep_for(Left(deadline));
    return false;
  }
  const uint64_t missing = turn.until - partition.next();
  // Messages in the client's queue count against its limit, those held here do not.
  if (partition.held() < missing && !partition.HoldsFrame()) {
    TACIT_RETURN_IF_ERROR(
        fetcher.Fetch(turn.partition, missing - partition.held(), milliseconds(0), &fetched_));
    partition.Hold(&fetched_);
  }
  while (true) {
    if (auto taken = partition.Take(envelope_, turn.until, records)) *last = std::move(taken);
    if (!partition.waiting()) break;
    LookAhead(partition);
    if (Left(deadline) <= milliseconds(0)) break;
    envelope_->Await(Left(deadline));
  }
  Tell(partition);
  return !partition.waiting();
}

void KafkaTurns::LookAhead(KafkaPartition& first) {
  if (!first.LookAhead(envelope_)) return;
  for (const auto& partition : partitions_)
    if (partition.get() != &first && !partition->LookAhead(envelope_)) return;
}

}  // namespace tacit::stream
