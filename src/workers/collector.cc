#include "workers/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tacit::workers {
namespace {

Taken Refuse(Outcome outcome, std::string why) { return {outcome, std::move(why), {}}; }

std::string NameOf(const OffsetRange& range) {
  return fmt::format("partition {}, offsets {} to {}", range.partition, range.begin, range.end);
}

std::string NameOf(const Seen& record) {
  if (!record) return "no record";
  return fmt::format("the record at offset {} of time {}", record->offset, record->timestamp_ms);
}

}  // namespace

void Collector::Begin(Period period) {
  period_ = std::move(period);
  seal_.emplace(key_, period_.head);
  held_.clear();
  held_bytes_ = 0;
  counted_.clear();
  covered_.clear();
  covered_offsets_ = 0;
}

Taken Collector::Take(const SealedRecord& record) {
  const Origin& origin = record.origin;
  if (origin.head != period_.head) return {Outcome::kOldHead, "", {}};
  if (origin.build != period_.build)
    return Refuse(Outcome::kOtherBuild,
                  fmt::format("worker '{}' has another program or configuration", origin.worker));
  const auto refuse = [&](Outcome outcome, std::string_view why) {
    return Refuse(outcome, fmt::format("a message of worker '{}' {}", origin.worker, why));
  };
  auto piece = OpenChunk(*seal_, record);
  if (!piece) return refuse(Outcome::kUnsealed, piece.error().message);
  const auto counted = std::ranges::find(counted_, record.place->body, &Counted::name);
  if (counted != counted_.end()) return {Outcome::kCovered, "", {}};

  const auto whole = Add(*record.place, *std::move(piece));
  if (!whole) return refuse(Outcome::kRefused, whole.error().message);
  if (whole->empty()) return {Outcome::kPart, "", {}};
  if (seal_->NameOf(*whole) != record.place->body)
    return refuse(Outcome::kRefused, "has a chunk of another body");
  auto body = DecodeBody(*whole);
  if (!body) return refuse(Outcome::kRefused, body.error().message);
  return Count(origin.worker, record.place->body, *std::move(body));
}

Taken Collector::TakeOwn(Body body) {
  const BodyName name = seal_->NameOf(EncodeBody(body));
  return Count("", name, std::move(body));
}

Result<std::string> Collector::Add(const ChunkPlace& place, std::string piece) {
  if (place.bytes > held_bytes_most_)
    return Fail(ErrorCode::kRefused, fmt::format("is of a body of {} bytes; at most {} are held",
                                                 place.bytes, held_bytes_most_));
  const auto [held, is_new] = held_.try_emplace(place.body);
  Held& body = held->second;
  if (is_new) {
    body.bytes = place.bytes;
    body.missing = (place.bytes + kChunkBytes - 1) / kChunkBytes;
    body.pieces.resize(body.missing);
  }
  body.touched = ++touches_;
  if (body.bytes != place.bytes ||
      (!body.pieces[place.chunk].empty() && body.pieces[place.chunk] != piece))
    return Fail(ErrorCode::kCorruption, "has a chunk that another one of its body contradicts");
  if (!body.pieces[place.chunk].empty()) return std::string();
  while (held_bytes_ + piece.size() > held_bytes_most_)
    Forget(std::ranges::min_element(held_, {}, [](const auto& one) { return one.second.touched; }));
  held_bytes_ += piece.size();
  body.here += piece.size();
  body.pieces[place.chunk] = std::move(piece);
  if (--body.missing > 0) return std::string();
  std::string whole;
  whole.reserve(body.bytes);
  for (const std::string& one : body.pieces) whole += one;
  Forget(held);
  return whole;
}

void Collector::Forget(std::map<BodyName, Held>::iterator held) {
  held_bytes_ -= held->second.here;
  held_.erase(held);
}

Taken Collector::Count(const std::string& worker, const BodyName& name, Body body) {
  Counted counted{name, worker, RangesOf(body), 0};
  for (const SummedRange& summed : body.ranges) {
    counted.unreadable += summed.unreadable;
    if (Around(summed.range) == nullptr)
      return Refuse(Outcome::kRefused, fmt::format("worker '{}' has summed {}, outside the period",
                                                   worker, NameOf(summed.range)));
  }
  for (const SummedRange& summed : body.ranges)
    if (const Covered* met = Meets(summed.range)) {
      const Counted& other = counted_[met->body];
      // One worker may know a schema that another does not know yet: their sums differ rightly.
      if (other.name == name || other.ranges != counted.ranges ||
          other.unreadable != counted.unreadable)
        return {Outcome::kCovered, "", {}};
      return Refuse(Outcome::kDiffers,
                    fmt::format("workers '{}' and '{}' have other sums of {}: one of them is wrong",
                                other.worker, worker, NameOf(summed.range)));
    }
  for (const SummedRange& summed : body.ranges)
    if (std::string broken = BrokenChain(summed); !broken.empty())
      return Refuse(Outcome::kOtherTopic,
                    fmt::format("worker '{}' has read another topic: {}", worker, broken));
  for (const SummedRange& summed : body.ranges) {
    covered_.insert({{summed.range.partition, summed.range.begin}, {summed, counted_.size()}});
    covered_offsets_ += summed.range.size();
  }
  counted_.push_back(std::move(counted));
  return {Outcome::kCounted, "", std::move(body)};
}

const OffsetRange* Collector::Around(const OffsetRange& range) const {
  const auto whole = std::ranges::find(period_.ranges, range.partition, &OffsetRange::partition);
  const bool lies =
      whole != period_.ranges.end() && whole->begin <= range.begin && range.end <= whole->end;
  return lies ? &*whole : nullptr;
}

const Collector::Covered* Collector::Meets(const OffsetRange& range) const {
  // The last covered range that begins before the end of this one.
  const auto after = covered_.lower_bound({range.partition, range.end});
  if (after == covered_.begin()) return nullptr;
  const Covered& before = std::prev(after)->second;
  return InOrder(before.summed.range, range) ? nullptr : &before;
}

std::string Collector::BrokenChain(const SummedRange& summed) const {
  const auto compare = [](const OffsetRange& range, const Seen& follows, const Seen& due) {
    if (follows == due) return std::string();
    return fmt::format("{} follows {}, where {} is due", NameOf(range), NameOf(follows),
                       NameOf(due));
  };
  const OffsetRange& range = summed.range;
  const auto right = covered_.lower_bound({range.partition, range.end});
  if (right != covered_.end() && right->first == CoveredPlace{range.partition, range.end})
    if (auto broken = compare(right->second.summed.range, right->second.summed.before, summed.last);
        !broken.empty())
      return broken;
  if (Around(range)->begin == range.begin) {
    const auto stored = period_.before.find(range.partition);
    return compare(range, summed.before,
                   stored == period_.before.end() ? Seen() : Seen(stored->second));
  }
  if (right == covered_.begin()) return "";
  const SummedRange& left = std::prev(right)->second.summed;
  const bool meet = left.range.partition == range.partition && left.range.end == range.begin;
  return meet ? compare(range, summed.before, left.last) : "";
}

Ranges Collector::Gaps() const {
  Ranges covered;
  for (const auto& [place, one] : covered_) covered.push_back(one.summed.range);
  return Without(period_.ranges, covered);
}

std::map<int32_t, stream::LastRecord> Collector::Last() const {
  std::map<int32_t, stream::LastRecord> last = period_.before;
  for (const auto& [place, one] : covered_)
    if (one.summed.last) last.insert_or_assign(place.first, *one.summed.last);
  return last;
}

}  // namespace tacit::workers
