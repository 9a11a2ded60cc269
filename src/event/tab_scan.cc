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
// Scans 64 bytes at a time. AVX2 is part of x86-64-v3, so nothing is chosen at run time.
size_t FindTabs(std::string_view record, std::span<uint32_t> out) {
  const __m256i tab = _mm256_set1_epi8('\t');
  const auto tabs_in = [tab](const char* bytes) -> uint64_t {
    const __m256i chunk = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(chunk, tab)));
  };
  size_t found = 0, i = 0;
  for (; i + 64 <= record.size(); i += 64) {
    const char* const bytes = record.data() + i;
    uint64_t hits = tabs_in(bytes) | tabs_in(bytes + 32) << 32;
    const auto count = static_cast<size_t>(std::popcount(hits));
    if (found + 64 <= out.size()) {
      // Writes eight positions at once, also behind the last: how many there are is hard to
      // foretell for the processor, and the next chunk writes over what is too much.
      uint32_t* to = out.data() + found;
      for (size_t written = 0; written < count; written += 8) {
        for (size_t j = 0; j < 8; ++j, hits &= hits - 1)
          to[written + j] = static_cast<uint32_t>(i) + static_cast<uint32_t>(_tzcnt_u64(hits));
      }
    } else {
      for (size_t at = found; at < out.size() && hits != 0; ++at, hits &= hits - 1)
        out[at] = static_cast<uint32_t>(i) + static_cast<uint32_t>(std::countr_zero(hits));
    }
    found += count;
  }
  return ScanBytes(record, i, found, out);
}
#else
size_t FindTabs(std::string_view record, std::span<uint32_t> out) {
  return FindTabsPortable(record, out);
}
#endif

}  // namespace tacit::event
