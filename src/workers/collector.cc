#include "workers/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

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

// Tells which records a worker has met in a range. What it made of them may differ.
auto RecordsMet(const SummedRange& summed) {
  return std::tuple(summed.before, summed.last, summed.empty);
}

}  // namespace

void Collector::Begin(Period period) {
  period_ = std::move(period);
  seal_.emplace(key_, period_.head);
  held_.clear();
  held_bytes_ = 0;
  dropped_.clear();
  counted_.clear();
  covered_.clear();
  claimed_.clear();
  covered_offsets_ = 0;
}

Taken Collector::Take(const SealedRecord& record) {
  forgotten_.clear();
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
  if (dropped_.contains({origin.worker, record.place->body})) return {Outcome::kPart, "", {}};

  const auto whole = Add(origin.worker, *record.place, *std::move(piece));
  if (!whole)
    return refuse(
        whole.error().code == ErrorCode::kUnavailable ? Outcome::kNoRoom : Outcome::kRefused,
        whole.error().message);
  if (whole->empty()) return {Outcome::kPart, "", {}};
  if (seal_->NameOf(*whole) != record.place->body)
    return refuse(Outcome::kRefused, "has a chunk of another body");
  auto body = DecodeBody(*whole);
  if (!body) return refuse(Outcome::kRefused, body.error().message);
  return Count(origin.worker, record.place->body, *std::move(body));
}

void Collector::Claim(const Ranges& ranges) {
  claimed_.insert(claimed_.end(), ranges.begin(), ranges.end());
  std::ranges::sort(claimed_, {},
                    [](const OffsetRange& one) { return std::pair(one.partition, one.begin); });
}

Taken Collector::TakeOwn(const std::vector<SummedRange>& ranges) {
  const std::string broken = Cover({.ranges = ranges, .own = true});
  if (broken.empty()) return {Outcome::kCounted, "", {}};
  return Refuse(Outcome::kOtherTopic,
                fmt::format("a worker, or this trainer, has read another topic: {}", broken));
}

Result<std::string> Collector::Add(const std::string& worker, const ChunkPlace& place,
                                   std::string piece) {
  if (place.bytes > held_bytes_most_) {
    dropped_.emplace(worker, place.body);
    return Fail(ErrorCode::kUnavailable,
                fmt::format("is of a body of {} bytes; at most {} are held", place.bytes,
                            held_bytes_most_));
  }
  const auto [held, is_new] = held_.try_emplace(place.body);
  Held& body = held->second;
  if (is_new) {
    body.worker = worker;
    body.bytes = place.bytes;
    body.missing = (place.bytes + kChunkBytes - 1) / kChunkBytes;
    body.pieces.resize(body.missing);
  }
  if (body.bytes != place.bytes ||
      (!body.pieces[place.chunk].empty() && body.pieces[place.chunk] != piece))
    return Fail(ErrorCode::kCorruption, "has a chunk that another one of its body contradicts");
  if (!body.pieces[place.chunk].empty()) return std::string();
  while (held_bytes_ + piece.size() > held_bytes_most_) {
    const auto least = std::ranges::min_element(held_, {}, [&](const auto& one) {
      return std::pair(one.second.here, one.first == place.body);
    });
    const bool itself = least == held;
    if (!itself) forgotten_.push_back(least->second.worker);
    dropped_.emplace(least->second.worker, least->first);
    Forget(least);
    if (itself)
      return Fail(
          ErrorCode::kUnavailable,
          fmt::format("has no room beside others: at most {} bytes are held", held_bytes_most_));
  }
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
  for (const SummedRange& summed : body.ranges)
    if (Around(summed.range) == nullptr)
      return Refuse(Outcome::kRefused, fmt::format("worker '{}' has summed {}, outside the period",
                                                   worker, NameOf(summed.range)));
  for (const SummedRange& summed : body.ranges)
    if (const Covered* met = Meets(summed.range)) {
      const Counted& other = counted_[met->body];
      const auto same = [&](auto part) {
        return std::ranges::equal(other.ranges, body.ranges, {}, part, part);
      };
      const auto differ = [&](Outcome outcome, const char* in, const char* follows) {
        return Refuse(outcome, fmt::format("workers '{}' and '{}' {} of {}{}", other.worker, worker,
                                           in, NameOf(summed.range), follows));
      };
      if (other.own || other.name == name || !same(&SummedRange::range))
        return {Outcome::kCovered, "", {}};
      if (!same(&RecordsMet))
        return differ(Outcome::kOtherRecords, "have met other records",
                      ": some were deleted meanwhile, and the sums that came first count");
      // One worker may know a schema that another does not know yet: their sums differ rightly.
      if (!same(&SummedRange::dead))
        return differ(Outcome::kOtherRecords, "could read other records",
                      ", and are not compared: the sums that came first count");
      return differ(Outcome::kDiffers, "have other sums", ": one of them is wrong");
    }
  const Ranges ranges = RangesOf(body);
  if (Without(ranges, claimed_) != ranges) return {Outcome::kCovered, "", {}};
  if (const Status fit = period_.check ? period_.check(body) : Status(); !fit)
    return Refuse(Outcome::kRefused,
                  fmt::format("sums of worker '{}': {}", worker, fit.error().message));
  if (const std::string broken = Cover({.name = name, .worker = worker, .ranges = body.ranges});
      !broken.empty())
    return Refuse(Outcome::kOtherTopic,
                  fmt::format("worker '{}' has read another topic: {}", worker, broken));
  return {Outcome::kCounted, "", std::move(body)};
}

std::string Collector::Cover(Counted body) {
  for (const SummedRange& summed : body.ranges)
    if (std::string broken = BrokenChain(summed, body.own); !broken.empty()) return broken;
  for (const SummedRange& summed : body.ranges) {
    covered_.insert({{summed.range.partition, summed.range.begin}, {summed, counted_.size()}});
    covered_offsets_ += summed.range.size();
  }
  counted_.push_back(std::move(body));
  return "";
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

std::string Collector::BrokenChain(const SummedRange& summed, bool own) const {
  const OffsetRange& range = summed.range;
  const auto compare = [&](const OffsetRange& next, const Seen& follows, const Seen& due) {
    // A record that the worker behind this process's range has met may be gone by now.
    const bool gone = own && follows && due && follows->offset > due->offset;
    if (follows == due || gone) return std::string();
    return fmt::format("{} follows {}, where {} is due", NameOf(next), NameOf(follows),
                       NameOf(due));
  };
  // This process has not seen the record before a range that it has read and that has none.
  const auto unseen = [](bool is_own, const Seen& last) { return is_own && !last; };
  const auto right = covered_.lower_bound({range.partition, range.end});
  if (right != covered_.end() && right->first == CoveredPlace{range.partition, range.end} &&
      !counted_[right->second.body].own && !unseen(own, summed.last))
    if (auto broken = compare(right->second.summed.range, right->second.summed.before, summed.last);
        !broken.empty())
      return broken;
  if (own) return "";
  if (Around(range)->begin == range.begin) {
    // The store has met no record there yet, or its last one is gone by now: by retention, or by
    // compaction, which leaves an earlier one.
    const auto stored = period_.before.find(range.partition);
    if (stored == period_.before.end() || !summed.before ||
        summed.before->offset < stored->second.offset)
      return "";
    return compare(range, summed.before, stored->second);
  }
  if (right == covered_.begin()) return "";
  const Covered& left = std::prev(right)->second;
  const bool meet =
      left.summed.range.partition == range.partition && left.summed.range.end == range.begin;
  if (!meet || unseen(counted_[left.body].own, left.summed.last)) return "";
  return compare(range, summed.before, left.summed.last);
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
