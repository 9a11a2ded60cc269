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

milliseconds Left(Steady::time_point deadline) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - Steady::now()));
}

}  // namespace

void KafkaTurns::Tell(KafkaPartition& partition) {
  const FetchedMessage* head = partition.Head();
  TurnOrder::Place place{.partition = partition.id(),
                         .next = partition.next(),
                         .head = std::nullopt,
                         .empty_until = partition.empty_until()};
  if (head != nullptr) place.head = {head->offset, head->timestamp_ms};
  order_.Set(place);
}

void KafkaTurns::Start(const PartitionStart& start) { Tell(reader_.Start(start)); }

void KafkaTurns::DropFetched() {
  reader_.DropFetched();
  for (const auto& partition : partitions()) Tell(*partition);
}

void KafkaTurns::DropRounds() {
  rounds_.Clear();
  round_.reset();
  order_.DropRound();
}

void KafkaTurns::Clear() {
  DropRounds();
  order_.Clear();
  reader_.Clear();
  over_ = true;
}

void KafkaTurns::SetFirst(std::span<const PartitionOffset> positions) {
  for (const PartitionOffset& position : positions)
    if (position.first_until > 0) order_.SetFirst(position.partition, position.first_until);
}

bool KafkaTurns::idle() const { return over_ && !round_ && rounds_.empty(); }

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
          for (const auto& partition : partitions()) partition->TickAt(order_.End(partition->id()));
        order_.ClearTick();
        if (TakeCuts(records)) return true;
        TACIT_ASSIGN(goes_on, BeginRound(fetcher, deadline));
        break;
      }
      case TurnOrder::Turn::Kind::kLook: {
        TACIT_ASSIGN(goes_on, reader_.Look(fetcher, turn.partition, deadline));
        Tell(*Find(turn.partition));
        break;
      }
      case TurnOrder::Turn::Kind::kTake: {
        TACIT_ASSIGN(goes_on, reader_.TakeBelow(fetcher, turn.partition, turn.until, deadline,
                                                records, last));
        Tell(*Find(turn.partition));
        if (records->size() > 0) return true;
        break;
      }
    }
    if (!goes_on) return false;
  }
}

bool KafkaTurns::TakeCuts(event::RawRecords* records) {
  for (const auto& partition : partitions()) {
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
    spdlog::info("topic '{}' has a new partition {}: it is read from offset {}", reader_.topic(),
                 moved.partition, *begin);
  }
  order_.Begin(*std::exchange(round_, std::nullopt));
  over_ = false;
  return true;
}

}  // namespace tacit::stream
