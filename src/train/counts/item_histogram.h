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

}  // namespace tacit::train
