#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/histories.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::train {

// The number of units that have each item, released with noise: a unit of n items counts 1 /
// sqrt(n) in each.
struct ItemHistogram {
  std::vector<float> sums;
  double stddev = 0;  // of the noise in each sum
  privacy::Charge charge;
};

// Releases one Gaussian query of at most `mu`, infinite for no noise. REQUIRES mu above 0. In each
// unit's history the first `known` items (empty: none) do not count, and of the others only the
// last `items_most` do. `noise` is used on this thread.
ItemHistogram ReleaseItems(const model::Histories& histories, std::span<const uint32_t> known,
                           size_t items_most, double mu, noise::NoiseSource& noise);

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

  // Adds a histogram after multiplying the earlier sums by `forget`.
  void Add(const ItemHistogram& histogram, double units, double forget);

  std::vector<float> Shares() const { return ItemShares(sums_, units_); }
  // Logarithms of the shares, for use as logits of popularity. Shares too small to be distinguished
  // from zero, below one unit or the noise's deviation, are raised to that level.
  std::vector<float> Logits() const;

 private:
  std::vector<float> sums_;
  double variance_ = 0, units_ = 0;
};

}  // namespace tacit::train
