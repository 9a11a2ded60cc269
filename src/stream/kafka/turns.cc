#include "stream/kafka/turns.h"

#include <utility>

namespace tacit::stream {
using std::chrono::milliseconds;

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
  ForgetRounds();
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

Result<bool> KafkaTurns::Take(MessageFetcher& fetcher, milliseconds timeout,
                              event::RawRecords* records, std::optional<LastRecord>* last) {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
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
        TACIT_ASSIGN(const auto round, NextRound(fetcher, deadline));
        if (!round) return false;
        order_.Begin(*round);
        over_ = false;
        goes_on = true;
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

}  // namespace tacit::stream
