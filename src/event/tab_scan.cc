#include "event/tab_scan.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <bit>

namespace tacit::event {
namespace {

size_t ScanBytes(std::string_view record, size_t begin, size_t found, std::span<uint32_t> out) {
  for (size_t i = begin; i < record.size(); ++i) {
    if (record[i] != '\t') continue;
    if (found < out.size()) out[found] = static_cast<uint32_t>(i);
    ++found;
  }
  return found;
}

}  // namespace

size_t FindTabsPortable(std::string_view record, std::span<uint32_t> out) {
  return ScanBytes(record, 0, 0, out);
}

#ifdef __AVX2__
// Scans 32 bytes at a time. AVX2 is part of x86-64-v3, so nothing is chosen at run time.
size_t FindTabs(std::string_view record, std::span<uint32_t> out) {
  const __m256i tab = _mm256_set1_epi8('\t');
  size_t found = 0, i = 0;
  for (; i + 32 <= record.size(); i += 32) {
    const __m256i chunk = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(record.data() + i));
    auto hits = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(chunk, tab)));
    const auto count = static_cast<size_t>(std::popcount(hits));
    // Nearly all chunks have few tabs, and a branch on their number would guess wrong. So this many
    // places are written, tabs or not: the next chunk overwrites the places that are no tabs.
    if (count <= kTabsAtOnce && found + kTabsAtOnce <= out.size()) {
      for (size_t k = 0; k < kTabsAtOnce; ++k, hits &= hits - 1)
        out[found + k] = static_cast<uint32_t>(i) + static_cast<uint32_t>(std::countr_zero(hits));
      found += count;
      continue;
    }
    for (; hits != 0; hits &= hits - 1) {
      if (found < out.size())
        out[found] = static_cast<uint32_t>(i) + static_cast<uint32_t>(std::countr_zero(hits));
      ++found;
    }
  }
  return ScanBytes(record, i, found, out);
}
#else
size_t FindTabs(std::string_view record, std::span<uint32_t> out) {
  return FindTabsPortable(record, out);
}
#endif

}  // namespace tacit::event
