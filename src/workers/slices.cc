#include "workers/slices.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tacit::workers {

bool InOrder(const OffsetRange& before, const OffsetRange& next) {
  return before.partition < next.partition ||
         (before.partition == next.partition && before.end <= next.begin);
}

uint64_t CountOffsets(std::span<const OffsetRange> ranges) {
  uint64_t count = 0;
  for (const OffsetRange& range : ranges) count += range.size();
  return count;
}

std::vector<Ranges> CutSlices(std::span<const OffsetRange> ranges, std::span<const double> rates) {
  std::vector<Ranges> slices(rates.size());
  const uint64_t offsets = CountOffsets(ranges);
  const double all = std::accumulate(rates.begin(), rates.end(), 0.0);
  size_t range = 0;
  uint64_t cut = 0, within = 0;  // offsets dealt so far, and those of ranges[range]
  double rate = 0;               // of the slices so far
  for (size_t i = 0; i < rates.size(); ++i) {
    rate += rates[i];
    const auto share =
        static_cast<uint64_t>(std::llround(static_cast<double>(offsets) * rate / all));
    const uint64_t end = i + 1 == rates.size() ? offsets : std::clamp(share, cut, offsets);
    while (cut < end) {
      const OffsetRange& from = ranges[range];
      const uint64_t taken = std::min(end - cut, from.size() - within);
      const uint64_t begin = from.begin + within;
      slices[i].push_back({from.partition, begin, begin + taken});
      cut += taken;
      within += taken;
      if (within < from.size()) continue;
      within = 0;
      ++range;
    }
  }
  return slices;
}

Ranges Without(std::span<const OffsetRange> ranges, std::span<const OffsetRange> taken) {
  Ranges left;
  auto next = taken.begin();
  for (OffsetRange rest : ranges) {
    while (next != taken.end() && InOrder(*next, rest)) ++next;
    // A taken range may reach into the next one of `ranges`: `next` stays at it.
    for (auto at = next; at != taken.end() && !InOrder(rest, *at); ++at) {
      if (rest.begin < at->begin) left.push_back({rest.partition, rest.begin, at->begin});
      rest.begin = std::min(rest.end, at->end);
    }
    if (rest.size() > 0) left.push_back(rest);
  }
  return left;
}

}  // namespace tacit::workers
