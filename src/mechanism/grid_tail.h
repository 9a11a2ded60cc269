#pragma once

#include <cstdint>

#include "noise/noise.h"

namespace tacit::mechanism {

// Draws NoiseSource::AddGridGaussian's noise on a 0 given that it is at least `threshold`, exactly:
// floor(stddev z) + d for z of a normal's tail and d of the dither, until the sum is there.
int64_t GridGaussianAbove(double stddev, int64_t threshold, noise::NoiseSource& noise);

}  // namespace tacit::mechanism
