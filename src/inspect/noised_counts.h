#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "noise/noise.h"

namespace tacit::inspect {

// Counts that are released together, once, with Gaussian noise. They come in groups: a unit moves
// the counts of a group by a vector of norm `bound` at most, with any others; so a unit
// moves all of them, weighted, by the root of the sum of (bound * weight)^2, and that is what the
// noise is a multiple of. Counts are integers on a grid of powers of two, and integers are noised.
//
// A multiplier of 0 has no noise: the twin that tests compare with, which promises nothing.
class NoisedCounts {
 public:
  explicit NoisedCounts(double noise_multiplier) : noise_multiplier_(noise_multiplier) {}

  // Adds a group and returns the place of its first count. A group of a larger weight gets less
  // noise. REQUIRES whole counts below 2^40, a bound above 0, and a weight that is a power of two
  // between 2^-10 and 2^10.
  size_t Add(std::span<const double> counts, double bound, double weight = 1);

  // Releases all groups; afterwards operator[] and deviation() are of what was released. REQUIRES
  // that it is called once; that sensitivity() is below 2^21 times the smallest weight, and the
  // multiple of it that is the noise below 2^38 times, so that the grid has room for both.
  void Release(noise::NoiseSource& noise);
  // The noised count of a place. REQUIRES Release().
  double operator[](size_t place) const { return released_[place]; }
  // The deviation of the noise of a place. REQUIRES Release().
  double deviation(size_t place) const { return deviation_[place]; }
  double weight(size_t place) const { return weight_[place]; }
  // The norm by which a unit moves all counts as they were weighted.
  double sensitivity() const;
  // The counts as they were weighted, before noise: as private as the records.
  const std::vector<double>& weighted() const { return weighted_; }

 private:
  const double noise_multiplier_;
  double squares_ = 0;  // of the bounds, weighted
  double smallest_weight_ = 1;
  std::vector<double> weighted_, weight_, released_, deviation_;
};

// A name that no more than one unit has is shown with a probability below 2^-128, about that of
// guessing the key of the noise: a threshold lies this many deviations above what a unit can add, a
// unit has 2^18 names at most. It is the delta of a stable histogram, too small for a ledger.
inline constexpr double kNameDeviations = 14;
inline constexpr size_t kNamesOfUnitMost = size_t{1} << 18;
// Returns the noised count from which a name is shown. `bound`: what a unit adds to one name.
double NameThreshold(double bound, double deviation);

}  // namespace tacit::inspect
