#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacit {

// The rows of one multi-hot slot, at the end of a vector of rows: distinct, in the order of their
// first values, and no more than a limit. A sender may repeat any value at any length, so a value
// costs a search and never a walk through all rows. Not thread-safe.
class DistinctRows {
 public:
  // Begins a slot behind the rows that are there.
  void Begin(size_t rows, size_t most) {
    begin_ = rows;
    most_ = most;
    sorted_.clear();
  }
  bool IsFull(const std::vector<uint64_t>& rows) const { return rows.size() - begin_ == most_; }
  // Appends the row unless the slot has it, or is full. REQUIRES the vector of Begin.
  void Add(uint64_t row, std::vector<uint64_t>* rows) {
    if (IsFull(*rows)) return;
    const auto recent = rows->begin() + static_cast<ptrdiff_t>(begin_ + sorted_.size());
    if (std::find(recent, rows->end(), row) != rows->end() ||
        std::binary_search(sorted_.begin(), sorted_.end(), row))
      return;
    rows->push_back(row);
    if (rows->size() - begin_ - sorted_.size() == kRecent) SortRecent(*rows);
  }

 private:
  static constexpr size_t kRecent = 64;  // rows that are not sorted yet, at most

  void SortRecent(const std::vector<uint64_t>& rows) {
    const auto middle = static_cast<ptrdiff_t>(sorted_.size());
    sorted_.insert(sorted_.end(), rows.end() - kRecent, rows.end());
    std::sort(sorted_.begin() + middle, sorted_.end());
    std::inplace_merge(sorted_.begin(), sorted_.begin() + middle, sorted_.end());
  }

  size_t begin_ = 0, most_ = 0;
  std::vector<uint64_t> sorted_;  // the first rows of the slot
};

}  // namespace tacit
