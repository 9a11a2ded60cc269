#include "stream/kafka/period_cut.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace tacit::stream {
namespace {

using Ends = std::vector<uint64_t>;  // one a partition

uint64_t Sum(const Ends& ends) { return std::accumulate(ends.begin(), ends.end(), uint64_t{0}); }

// The partitions' ends before a time and at it, between which a period of `offsets` ends.
struct Bracket {
  Ends below, above;
  uint64_t before = 0;  // the sum of the ranges' begins
  uint64_t offsets = 0;

  bool Reaches(const Ends& ends) const { return Sum(ends) - before >= offsets; }
  // Two partitions or more could give what is missing.
  bool IsOpen() const {
    size_t unlike = 0;
    for (size_t p = 0; p < below.size(); ++p) unlike += below[p] != above[p] ? 1 : 0;
    return unlike > 1 && Sum(above) - before > offsets;
  }
};

// Narrows the bracket down to one millisecond, or less far where that changes nothing.
Status Narrow(std::span<const OffsetRange> there, OffsetsByTime& times, Bracket* bracket) {
  int64_t low = 0, high = kPeriodTimeMost;
  for (int asked = 0; asked < kPeriodQuestionsMost && high - low > 1 && bracket->IsOpen();
       ++asked) {
    const int64_t middle = low + (high - low) / 2;
    TACIT_ASSIGN(Ends ends, times.FirstFrom(middle, there));
    TACIT_CHECK(ends.size() == there.size(), "an answer for each partition");
    for (size_t p = 0; p < ends.size(); ++p)
      ends[p] = std::clamp(ends[p], bracket->below[p], bracket->above[p]);
    const bool reaches = bracket->Reaches(ends);
    (reaches ? bracket->above : bracket->below) = std::move(ends);
    (reaches ? high : low) = middle;
  }
  return {};
}

// Takes what is missing from the gaps, in proportion.
Ends Share(const Bracket& bracket) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t missing = bracket.offsets - (Sum(bracket.below) - bracket.before);
  const uint64_t gaps = Sum(bracket.above) - Sum(bracket.below);
  Ends ends = bracket.below;
  if (missing == 0) return ends;
  struct Remainder {
    uint64_t size = 0;
    size_t index = 0;
  };
  std::vector<Remainder> remainders;
  uint64_t left = missing;
  for (size_t p = 0; p < ends.size(); ++p) {
    const Wide product = static_cast<Wide>(missing) * (bracket.above[p] - bracket.below[p]);
    const auto share = static_cast<uint64_t>(product / gaps);
    ends[p] += share;
    left -= share;
    remainders.push_back({static_cast<uint64_t>(product % gaps), p});
  }
  std::ranges::stable_sort(remainders, std::greater(), &Remainder::size);
  for (uint64_t i = 0; i < left; ++i) ++ends[remainders[i].index];
  return ends;
}

}  // namespace

Result<std::optional<std::vector<OffsetRange>>> CutPeriod(std::span<const OffsetRange> there,
                                                          uint64_t offsets, bool closes,
                                                          OffsetsByTime& times) {
  TACIT_CHECK(offsets > 0 && offsets <= kPeriodOffsetsMost, "no size of a period");
  Bracket bracket{.below = {}, .above = {}, .before = 0, .offsets = offsets};
  for (const OffsetRange& range : there) {
    bracket.below.push_back(range.begin);
    bracket.above.push_back(range.end);
  }
  bracket.before = Sum(bracket.below);
  std::vector<OffsetRange> period(there.begin(), there.end());
  if (!bracket.Reaches(bracket.above)) {
    if (!closes) return std::nullopt;
    return period;
  }
  TACIT_RETURN_IF_ERROR(Narrow(there, times, &bracket));
  const Ends ends = Share(bracket);
  for (size_t p = 0; p < ends.size(); ++p) period[p].end = ends[p];
  return period;
}

}  // namespace tacit::stream
