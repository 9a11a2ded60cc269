#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacit::train {

// A hash map from rows to small values that only grows. It uses open addressing: a look-up usually
// reads one cache line, which Prefetch can fetch ahead. Not thread-safe.
template <class Value>
class RowMap {
 public:
  RowMap() { Resize(kEntriesMin); }

  size_t size() const { return size_; }
  void Prefetch(uint64_t row) const { __builtin_prefetch(&entries_[Home(row)]); }
  // Returns the row's value, initially Value(). Valid until the next call. REQUIRES that `row` is
  // not the largest uint64_t.
  Value& operator[](uint64_t row) {
    Entry* entry = Find(row);
    if (entry->row == row) return entry->value;
    if ((size_ + 1) * 2 > entries_.size()) {
      Grow();
      entry = Find(row);
    }
    ++size_;
    entry->row = row;
    return entry->value;
  }

 private:
  static constexpr size_t kEntriesMin = 1024;
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Entry {
    uint64_t row = kNone;
    Value value{};
  };

  // Fibonacci hashing: spreads neighbouring rows far apart.
  size_t Home(uint64_t row) const { return (row * 0x9E3779B97F4A7C15u) >> shift_; }
  // Returns the row's entry, or the free one for it.
  Entry* Find(uint64_t row) {
    size_t i = Home(row);
    while (entries_[i].row != row && entries_[i].row != kNone) i = (i + 1) & (entries_.size() - 1);
    return &entries_[i];
  }
  void Resize(size_t entries) {
    entries_.assign(entries, {});
    shift_ = 64 - static_cast<unsigned>(std::bit_width(entries - 1));
  }
  void Grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    --shift_;
    for (const Entry& entry : old)
      if (entry.row != kNone) *Find(entry.row) = entry;
  }

  std::vector<Entry> entries_;
  unsigned shift_ = 0;
  size_t size_ = 0;
};

}  // namespace tacit::train
