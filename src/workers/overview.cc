#include "workers/overview.h"

#include <algorithm>
#include <utility>

namespace tacit::workers {

void Overview::SeePlan(std::string_view value) {
  auto plan = DecodePlan(key_, value);
  if (!plan)
    ++unread_["plans: " + plan.error().message];
  else if (!plan_ || plan_->time_ms <= plan->time_ms)
    plan_ = *std::move(plan);
}

void Overview::SeeSums(std::string_view key, std::string_view value, int64_t time_ms) {
  const auto record = ReadSums(key, value);
  if (!record) {
    ++unread_["sums: " + record.error().message];
    return;
  }
  if (record->place) return SeeChunk(*record);
  auto hello = OpenHello(key_, *record);
  if (!hello) {
    ++unread_["hellos: " + hello.error().message];
    return;
  }
  const std::string& name = record->origin.worker;
  uint64_t& newest = newest_hello_[name];
  if (hello->number < newest) return;
  newest = hello->number;
  if (hello->leaves)
    workers_.erase(name);
  else
    workers_.insert_or_assign(name, Heard{*std::move(hello), time_ms});
}

void Overview::SeeChunk(const SealedRecord& record) {
  if (!plan_ || record.origin.head != plan_->head) {
    ++others_;
    return;
  }
  const auto piece = OpenChunk(PeriodSeal(key_, plan_->head), record);
  if (!piece) {
    ++unread_["sums: " + piece.error().message];
    return;
  }
  const ChunkPlace& place = *record.place;
  Body& body = bodies_.try_emplace(place.body, Body{.missing = place.bytes}).first->second;
  if (!body.chunks.insert(place.chunk).second) return;
  body.missing -= std::min<uint64_t>(body.missing, piece->size());
  if (place.chunk > 0) return;
  // The ranges stand at a body's beginning.
  if (const auto first = DecodeBody(*piece))
    body.ranges = RangesOf(*first);
  else
    ++unread_["sums: " + first.error().message];
}

std::vector<Overview::Progress> Overview::slices() const {
  if (!plan_) return {};
  std::vector<Progress> slices;
  for (const Slice& slice : plan_->slices) {
    Ranges left = slice.ranges;
    for (const auto& [name, body] : bodies_)
      if (body.missing == 0) left = Without(left, body.ranges);
    const uint64_t offsets = CountOffsets(slice.ranges);
    slices.push_back({slice, offsets, offsets - CountOffsets(left)});
  }
  return slices;
}

}  // namespace tacit::workers
