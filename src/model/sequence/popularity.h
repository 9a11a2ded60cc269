#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The popularity of items, out of released histograms in which a unit of n items counts 1 / sqrt(n)
// in each. All of it is post-processing of what was released.
namespace tacit::model {

// The chance that a unit has an item, per sum of 1. All sums together give the units' sqrt(n),
// whose mean undoes the division on average. `units` is the number of units, or a public number of
// about that size.
double ShareOfOne(std::span<const float> sums, double units);
// The chance that a unit has each item.
std::vector<float> ItemShares(std::span<const float> sums, double units);

// Accumulates the histograms of a stream's periods.
class RunningItems {
 public:
  explicit RunningItems(size_t items) : sums_(items) {}

  // Adds a histogram with noise of this deviation, after multiplying the earlier sums by `forget`.
  void Add(std::span<const float> sums, double stddev, double units, double forget);

  // Goes on with more items, which nobody has had yet; item i is at places[i], or without places
  // where it was. REQUIRES at least as many as before.
  void GrowTo(size_t items, std::span<const uint32_t> places = {});

  std::vector<float> Shares() const { return ItemShares(sums_, units_); }
  // Logarithms of the shares, for use as logits of popularity. Shares too small to be distinguished
  // from zero, below one unit or the noise's deviation, are raised to that level.
  std::vector<float> Logits() const;

  // The stored form (popularity.cc). Decode fails with kCorruption if the bytes are damaged, with
  // kInvalidArgument if they are of another number of items.
  std::string Encode() const;
  static Result<RunningItems> Decode(std::string_view bytes, size_t items);

 private:
  std::vector<float> sums_;
  double variance_ = 0, units_ = 0;
};

}  // namespace tacit::model
