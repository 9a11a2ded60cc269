#include "stream/steps/sum_blocks.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tacit::stream {
namespace {

constexpr double kMost = 0x1p62;

// The ends of runs of equal blocks; block(u) is unit u's.
template <class EndOf, class BlockOf>
std::vector<uint32_t> EndsOf(size_t units, const EndOf& end, const BlockOf& block) {
  std::vector<uint32_t> ends;
  for (size_t u = 1; u < units; ++u) {
    const uint64_t before = block(u - 1), own = block(u);
    TACIT_CHECK(before <= own, "units are not in the order of their blocks");
    if (before != own) ends.push_back(end(u - 1));
  }
  if (units > 0) ends.push_back(end(units - 1));
  return ends;
}

}  // namespace

std::vector<uint32_t> BlocksByOffset(std::span<const uint64_t> offset, double share) {
  const auto offsets = static_cast<uint64_t>(std::min(kMost, std::ceil(kSumBlockRecords / share)));
  return EndsOf(
      offset.size(), [](size_t u) { return static_cast<uint32_t>(u + 1); },
      [&](size_t u) { return offset[u] / offsets; });
}

std::vector<uint32_t> BlocksByUser(std::span<const uint64_t> hashes,
                                   std::span<const uint32_t> unit_end, double records) {
  TACIT_CHECK(hashes.size() == unit_end.size(), "one hash per user");
  const auto blocks =
      static_cast<uint64_t>(std::clamp(std::ceil(records / kSumBlockRecords), 1.0, kMost));
  __extension__ using Wide = unsigned __int128;
  return EndsOf(
      hashes.size(), [&](size_t u) { return unit_end[u]; },
      [&](size_t u) { return static_cast<uint64_t>(Wide{hashes[u]} * blocks >> 64); });
}

}  // namespace tacit::stream
