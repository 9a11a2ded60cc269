#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "event/tab_scan.h"

// Private to this room: eight columns of a record at a time, for processors with AVX-512
// (base/cpu.h). Elsewhere the columns are read one by one; tests compare the two.
namespace tacit::event {

inline constexpr size_t kFieldsAtOnce = 8;

// FindTabs for such a processor.
size_t FindTabsWide(std::string_view record, std::span<uint32_t> out);

// The two below read the `count` fields behind a tab each: ends[0] is the place in `text` of the
// first one's tab, and ends[i + 1] that of field i's end. They write what each field stands for,
// and return a bit for each that they cannot read, whose place in the output means nothing.
// REQUIRES 0 < count <= kFieldsAtOnce, and 8 bytes of `text` that can be read from each field's
// begin.

// Decimal digits with an optional minus, of at most 8 bytes in all; an empty field is 0.
uint32_t ReadIntegersWide(const char* text, const uint32_t* ends, size_t count, int64_t* values);

// FeatureTransform::Buckets, from a feature on.
struct WideBuckets {
  const uint64_t* missing;
  const uint64_t* count;  // below 2^32
  const uint64_t* seed;
};

// Values of 8 bytes, and missing ones.
uint32_t ReadRowsWide(const char* text, const uint32_t* ends, size_t count,
                      const WideBuckets& buckets, uint64_t* rows);

}  // namespace tacit::event
