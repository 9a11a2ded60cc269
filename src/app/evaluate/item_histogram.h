#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/histories.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::app {

// How often units have each item, released with noise: a unit of n items counts 1 / sqrt(n) in
// each.
struct ItemHistogram {
  std::vector<float> sums;
  double stddev = 0;  // of the noise in each of them
  privacy::Charge charge;
};

// One Gaussian of at most `mu`, infinite for no noise; REQUIRES one above 0. Of each unit's history
// the first `known` items (empty: none) do not count, and of the others the last `items_most`.
// `noise` is used on this thread.
ItemHistogram ReleaseItems(const model::Histories& histories, std::span<const uint32_t> known,
                           size_t items_most, double mu, noise::NoiseSource& noise);

// What a sum of 1 is as a chance that a unit has the item. The sum of all cells is the units'
// sqrt(n), so that its mean undoes the division on average. `units`: how many there were, or a
// public number that is about as large.
double ShareOfOne(std::span<const float> sums, double units);
// The chance that a unit has each item.
std::vector<float> ItemShares(std::span<const float> sums, double units);

// What the histograms of a stream's periods tell together.
class RunningItems {
 public:
  explicit RunningItems(size_t items) : sums_(items) {}

  // What was there counts for `forget` of what it did.
  void Add(const ItemHistogram& histogram, double units, double forget);

  std::vector<float> Shares() const { return ItemShares(sums_, units_); }
  // Logarithms of the shares: what is popular, as logits. What cannot be told from nothing, being
  // less than one unit or than the noise's deviation, counts as that much.
  std::vector<float> Logits() const;

 private:
  std::vector<float> sums_;
  double variance_ = 0, units_ = 0;
};

}  // namespace tacit::app
