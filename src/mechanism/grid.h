#pragma once

#include <cstdint>
#include <span>

#include "noise/noise.h"

// Noise on a public power-of-two grid. Sums that lie on it get integer noise and become floats
// afterwards, by a function of the noisy integer alone: no bit of a released float depends on the
// data but through that integer (Mironov, 2012).
namespace tacit::mechanism {

// A query's grid: its step, and its noise in steps.
struct Grid {
  double step = 0;
  double stddev = 0;
};

// The grid of a query of this sensitivity and noise: 2^-30 of the sensitivity, rounded down to a
// power of two; coarser where the noise is above 128 times the sensitivity, for then noise and
// sums must still fit. REQUIRES 2^-23 <= stddev / clip <= 2^40.
Grid MakeGrid(double clip, double stddev);

// The grid of a histogram over a whole period, or a whole log, in which a unit counts as one vector
// of norm `clip`. It may hold a million units and more: it is 2^10 times coarser, so that 2^30
// units of full length fit where the grid's floats end (2^50 steps). A unit loses 2^-20 of the clip
// by rounding, which counts as the unit's and not as privacy.
Grid MakeHistogramGrid(double clip, double noise_multiplier);

// All of these cut large spans over the workers of `noise`, where it has some.

// out[i] = factor * step * (sums[i] + noise). `sums` are left noisy.
void Release(const Grid& grid, double factor, noise::NoiseSource& noise, std::span<int64_t> sums,
             std::span<float> out);
// values[i] = factor * step * (round(values[i] / step) + noise). Values beyond 2^50 steps count as
// 2^50, which brings no two of them further apart.
void Release(const Grid& grid, double factor, noise::NoiseSource& noise, std::span<float> values);
// out[i] = factor * step * noise: the release of sums that are zero because nobody touched them.
void ReleaseNoise(const Grid& grid, double factor, noise::NoiseSource& noise, std::span<float> out);

}  // namespace tacit::mechanism
