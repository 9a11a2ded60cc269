#include "privacy/coverage.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"

namespace tacit::privacy {
namespace {

constexpr uint8_t kFormat = 1;

// Makes `offset` the beginning of a step without changing the function.
std::map<uint64_t, double>::iterator SplitAt(std::map<uint64_t, double>& steps, uint64_t offset) {
  const auto after = steps.upper_bound(offset);
  const double value = after == steps.begin() ? 0 : std::prev(after)->second;
  if (after != steps.begin() && std::prev(after)->first == offset) return std::prev(after);
  return steps.emplace_hint(after, offset, value);
}

bool AnyOverlap(std::span<const OffsetRange> ranges) {
  std::vector<OffsetRange> sorted(ranges.begin(), ranges.end());
  std::sort(sorted.begin(), sorted.end(), [](const OffsetRange& a, const OffsetRange& b) {
    return std::tie(a.partition, a.begin) < std::tie(b.partition, b.begin);
  });
  return std::adjacent_find(sorted.begin(), sorted.end(),
                            [](const OffsetRange& a, const OffsetRange& b) {
                              return a.partition == b.partition && b.begin < a.end;
                            }) != sorted.end();
}

}  // namespace

double Coverage::AddTo(Steps& steps, uint64_t begin, uint64_t end, double mu_squared) {
  auto step = SplitAt(steps, begin);
  const auto last = SplitAt(steps, end);
  double before = step == steps.begin() ? 0 : std::prev(step)->second;
  double highest = 0;
  // Steps that have become equal to the one before are none: after the last, on rounding, or when
  // both are infinite.
  for (bool inside = true; inside;) {
    inside = step != last;
    if (inside) highest = std::max(highest, step->second += mu_squared);
    if (step->second == before) {
      step = steps.erase(step);
    } else {
      before = step->second;
      ++step;
    }
  }
  return highest;
}

double Coverage::HighestIn(const Steps& steps, uint64_t begin, uint64_t end) {
  double highest = 0;
  auto step = steps.upper_bound(begin);
  if (step != steps.begin()) highest = std::prev(step)->second;
  for (; step != steps.end() && step->first < end; ++step)
    highest = std::max(highest, step->second);
  return highest;
}

void Coverage::Add(std::string_view topic, std::span<const OffsetRange> ranges, double mu_squared) {
  TACIT_CHECK(mu_squared >= 0);
  if (mu_squared == 0) return;
  for (const OffsetRange& range : ranges) {
    TACIT_CHECK(range.begin <= range.end, "a range that ends before it begins");
    if (range.size() == 0) continue;
    Steps& steps = partitions_[Place(topic, range.partition)];
    worst_ = std::max(worst_, AddTo(steps, range.begin, range.end, mu_squared));
  }
}

double Coverage::WorstAfter(std::string_view topic, std::span<const OffsetRange> ranges,
                            double mu_squared) const {
  if (AnyOverlap(ranges)) {
    Coverage after = *this;
    after.Add(topic, ranges, mu_squared);
    return after.worst_;
  }
  double worst = worst_;
  for (const OffsetRange& range : ranges) {
    if (range.size() == 0) continue;
    const auto found = partitions_.find(Place(topic, range.partition));
    const double used =
        found == partitions_.end() ? 0 : HighestIn(found->second, range.begin, range.end);
    worst = std::max(worst, used + mu_squared);
  }
  return worst;
}

void Coverage::AddAll(const Coverage& other) {
  for (const auto& [place, steps] : other.partitions_) {
    for (auto step = steps.begin(); step != steps.end(); ++step) {
      if (step->second == 0) continue;
      const OffsetRange range{place.second, step->first, std::next(step)->first};
      Add(place.first, {&range, 1}, step->second);
    }
  }
}

std::string Coverage::Encode() const {
  ByteWriter out;
  out.Put(kFormat).Put(static_cast<uint32_t>(partitions_.size()));
  for (const auto& [place, steps] : partitions_) {
    out.PutString(place.first).Put(place.second).Put(static_cast<uint64_t>(steps.size()));
    for (const auto& [offset, mu_squared] : steps) out.Put(offset).Put(mu_squared);
  }
  return std::move(out).Take();
}

Result<Coverage> Coverage::Decode(std::string_view bytes) {
  const auto broken = [] { return Fail(ErrorCode::kCorruption, "coverage is not well-formed"); };
  ByteReader in(bytes);
  if (in.Get<uint8_t>() != kFormat) return broken();
  Coverage coverage;
  const auto partitions = in.Get<uint32_t>();
  for (uint32_t i = 0; i < partitions && in.ok(); ++i) {
    std::string topic(in.GetString());
    const Place place(std::move(topic), in.Get<int32_t>());
    const auto count = in.Get<uint64_t>();
    // Written in order, every place once; no partition is without a step.
    if (count == 0 || count > in.remaining() / 16) return broken();
    if (!coverage.partitions_.empty() && !(coverage.partitions_.rbegin()->first < place))
      return broken();
    Steps& steps = coverage.partitions_[place];
    for (uint64_t k = 0; k < count; ++k) {
      const auto offset = in.Get<uint64_t>();
      const auto mu_squared = in.Get<double>();
      const double before = steps.empty() ? 0 : steps.rbegin()->second;
      const bool ascends = steps.empty() || offset > steps.rbegin()->first;
      if (!ascends || !(mu_squared >= 0) || mu_squared == before) return broken();
      steps.emplace_hint(steps.end(), offset, mu_squared);
      coverage.worst_ = std::max(coverage.worst_, mu_squared);
    }
    if (steps.rbegin()->second != 0) return broken();
  }
  if (!in.at_end()) return broken();
  return coverage;
}

}  // namespace tacit::privacy
