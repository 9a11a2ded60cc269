#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tacit::mechanism {

// Looks rows up in an ascending list, one after the other, in ascending order. Each look-up starts
// where the last one ended and doubles its stride, so that many rows in a long list cost little
// more than a walk, and few rows no more than a binary search each.
class AscendingLookup {
 public:
  explicit AscendingLookup(std::span<const uint64_t> list) : list_(list) {}

  // REQUIRES that `row` is not below the row of the previous call.
  bool Contains(uint64_t row) {
    size_t stride = 1, begin = place_;
    while (place_ + stride < list_.size() && list_[place_ + stride] < row) {
      begin = place_ + stride;
      stride *= 2;
    }
    const auto from = list_.begin() + static_cast<ptrdiff_t>(begin);
    const auto to =
        list_.begin() + static_cast<ptrdiff_t>(std::min(place_ + stride + 1, list_.size()));
    place_ = static_cast<size_t>(std::lower_bound(from, to, row) - list_.begin());
    return place_ < list_.size() && list_[place_] == row;
  }
  // The place of the row looked up last, or the place where it would be.
  size_t place() const { return place_; }

 private:
  std::span<const uint64_t> list_;
  size_t place_ = 0;
};

}  // namespace tacit::mechanism
