#include "stream/kafka/order.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace tacit::stream {

size_t TurnOrder::IndexOf(int32_t partition) const {
  const auto found = std::ranges::lower_bound(
      shares_, partition, {}, [](const Share& share) { return share.place.partition; });
  return static_cast<size_t>(found - shares_.begin());
}

bool TurnOrder::Knows(int32_t partition) const {
  const size_t index = IndexOf(partition);
  return index < shares_.size() && shares_[index].place.partition == partition;
}

void TurnOrder::Set(const Place& place) {
  const size_t index = IndexOf(place.partition);
  if (Knows(place.partition)) {
    shares_[index].place = place;
  } else {
    shares_.insert(shares_.begin() + static_cast<ptrdiff_t>(index),
                   Share{.place = place, .end = place.next, .blocks = 0});
  }
}

void TurnOrder::Begin(const Round& round) {
  TACIT_CHECK(!block_, "a round is not over");
  for (Share& share : shares_) share.blocks = 0;
  for (const PartitionEnd& moved : round.moved) {
    TACIT_CHECK(Knows(moved.partition), "a round of a partition that is not read");
    shares_[IndexOf(moved.partition)].end = moved.end;
  }
  tick_ = round.tick;
}

TurnOrder::Turn TurnOrder::Next() {
  if (block_) {
    Share& share = shares_[IndexOf(block_->partition)];
    const Place& place = share.place;
    if (place.next < block_->until) {
      if (place.head && place.head->offset < block_->until)
        return {Turn::Kind::kTake, place.partition, block_->until};
      if (!place.head && place.empty_until < block_->until)
        return {Turn::Kind::kLook, place.partition, 0};
    }
    ++share.blocks;
    block_.reset();
  }
  return Choose();
}

bool TurnOrder::IsBefore(const Share& a, const Share& b) {
  const auto key = [](const Share& share) {
    return std::tuple(share.place.head->timestamp_ms, share.blocks, share.place.partition);
  };
  return key(a) < key(b);
}

TurnOrder::Turn TurnOrder::Take(const Share& share, uint64_t end) {
  const uint64_t boundary = (share.place.head->offset / kBlock + 1) * kBlock;
  block_ = {share.place.partition, std::min(boundary, end)};
  return {Turn::Kind::kTake, block_->partition, block_->until};
}

TurnOrder::Turn TurnOrder::ChooseFirst() {
  for (const auto& [partition, until] : first_) {
    if (!Knows(partition)) continue;
    const Share& share = shares_[IndexOf(partition)];
    const uint64_t end = std::min(share.end, until);
    if (share.place.next >= end || share.place.empty_until >= end) continue;
    if (!share.place.head) return {Turn::Kind::kLook, partition, 0};
    if (share.place.head->offset < end) return Take(share, end);
  }
  return {};
}

TurnOrder::Turn TurnOrder::Choose() {
  if (const Turn first = ChooseFirst(); first.kind != Turn::Kind::kNoRound) return first;
  const Share* first = nullptr;
  for (const Share& share : shares_) {
    const Place& place = share.place;
    if (place.next >= share.end) continue;
    if (!place.head) {
      if (place.empty_until < share.end) return {Turn::Kind::kLook, place.partition, 0};
      continue;
    }
    if (place.head->offset >= share.end) continue;
    if (first == nullptr || IsBefore(share, *first)) first = &share;
  }
  return first == nullptr ? Turn() : Take(*first, first->end);
}

uint64_t TurnOrder::End(int32_t partition) const {
  TACIT_CHECK(Knows(partition), "a partition that is not read");
  const Share& share = shares_[IndexOf(partition)];
  return std::max(share.end, share.place.next);
}

void TurnOrder::DropRound() {
  for (Share& share : shares_) share.end = share.place.next;
  block_.reset();
  tick_ = false;
}

void TurnOrder::Clear() {
  shares_.clear();
  first_.clear();
  block_.reset();
  tick_ = false;
}

}  // namespace tacit::stream
