#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tacit::train {

// Tells which of a column's values have not come before. Values are hashed into bits, and bits of
// long ago are forgotten, so that memory is fixed (24 KiB). In a column of very many values some
// are always new; what counts is whether their number is the usual one.
class KnownValues {
 public:
  KnownValues();

  void See(uint64_t value);
  // Returns the share of the window's values that are new, without the most frequent one among
  // these: a single new category is no reason for alarm.
  double new_share() const;
  // Ends a window; its values are known from now on if `keep`.
  void EndWindow(bool keep);

 private:
  using Bits = std::vector<uint64_t>;

  Bits known_, before_, fresh_;
  std::array<uint32_t, 64> new_by_cell_{};  // by hash, to find the most frequent new value
  uint32_t values_ = 0, news_ = 0, windows_ = 0;
};

}  // namespace tacit::train
