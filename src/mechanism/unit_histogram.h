#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mechanism/grid.h"
#include "mechanism/unit_vector.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::mechanism {

// A histogram over a public list of cells, in which a unit counts as one vector of norm 1, released
// once with Gaussian noise on EVERY cell, untouched ones included. Sums are integers on the grid of
// a period's histogram. It costs one Gaussian of its noise multiplier that no sampling amplifies:
// taking a unit out moves the sums by a norm of at most 1; replacing it by another, whose numbers
// are not below 0 either, by at most sqrt(2).
//
// A multiplier of 0 is for experiments without privacy: no noise, and an unbounded charge.
class UnitHistogram {
 public:
  UnitHistogram(size_t cells, double noise_multiplier);

  // Adds a unit's whole vector: weights of at least 0 that are scaled to norm 1. May be called from
  // any thread; the order makes no difference. REQUIRES one call per unit, a vector of as many
  // cells, and finite weights.
  void Add(const UnitVector& unit);
  // Returns sums plus noise, once. The noise has a key of its own: a cloned machine must not draw
  // it again.
  std::vector<float> Release(noise::NoiseSource& noise) &&;

  privacy::Charge charge() const;

  // The sums of the units added so far, in steps; as private as the data.
  std::span<const int64_t> sums() const { return sums_; }
  double step() const { return grid_.step; }

 private:
  const double noise_multiplier_;
  const Grid grid_;
  std::vector<int64_t> sums_;
};

}  // namespace tacit::mechanism
