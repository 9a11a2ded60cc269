#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "noise/noise.h"

namespace tacit::train {

// Poisson sampling: a step takes each unit with the same probability, each by a coin of its own.
// The charge of the Poisson-subsampled Gaussian holds for this; it does not hold for batches of a
// fixed size or epochs of a shuffled list. The coins are secret and get a new key at every step: a
// cloned machine must not draw the same batches. Not thread-safe.
class UnitSampler {
 public:
  // REQUIRES 0 < rate <= 1. At rate 1 there are no coins.
  UnitSampler(uint64_t units, double rate, std::unique_ptr<noise::NoiseSource> coins);

  double rate() const { return rate_; }
  // Draws the units of a step, ascending; valid until the next call.
  std::span<const uint64_t> Sample();

 private:
  const uint64_t units_;
  const double rate_;
  const std::unique_ptr<noise::NoiseSource> coins_;
  std::vector<uint64_t> chosen_;
};

}  // namespace tacit::train
