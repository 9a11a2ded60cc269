#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacit::serve {

// The weights of rows that were read of late, for as long as no weight changes: most values of a
// request are of the few thousand that most requests have. A row has one place, from which the next
// row that belongs there drives it out. 256 KiB. Not thread-safe.
class WeightMemo {
 public:
  WeightMemo() : entries_(kEntries) {}

  // Forgets all: the model has changed.
  void Clear() { std::ranges::fill(entries_, Entry{}); }
  // Tells whether the row's weight is known, and sets it.
  bool Find(uint64_t row, float* weight) const {
    const Entry& entry = entries_[PlaceOf(row)];
    if (entry.row != row) return false;
    *weight = entry.weight;
    return true;
  }
  void Keep(uint64_t row, float weight) { entries_[PlaceOf(row)] = {row, weight}; }

 private:
  static constexpr unsigned kBits = 14;
  static constexpr size_t kEntries = size_t{1} << kBits;
  struct Entry {
    uint64_t row = UINT64_MAX;  // no row's number
    float weight = 0;
  };

  // Fibonacci hashing: spreads neighbouring rows.
  static size_t PlaceOf(uint64_t row) { return (row * 0x9E3779B97F4A7C15u) >> (64 - kBits); }

  std::vector<Entry> entries_;
};

}  // namespace tacit::serve
