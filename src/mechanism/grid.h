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

// Returns the grid of a query of this sensitivity and noise: 2^-30 of the sensitivity, rounded down
// to a power of two. It is coarser if the noise is above 128 times the sensitivity, because noise
// and sums must still fit. REQUIRES 2^-23 <= stddev / clip <= 2^40.
Grid MakeGrid(double clip, double stddev);

// Returns the grid of a histogram over a whole period, or a whole log, in which a unit counts as
// one vector of norm `clip`. A histogram may hold a million units and more, so its grid is 2^10
// times coarser: 2^30 units of full length fit below 2^50 steps, where the grid's floats end.
// Rounding takes up to 2^-20 of the clip from a unit's count and nothing from its privacy.
Grid MakeHistogramGrid(double clip, double noise_multiplier);

// All of these split large spans over the workers of `noise`, if it has any.

// out[i] = factor * step * (sums[i] + noise). `sums` are left noisy.
void Release(const Grid& grid, double factor, noise::NoiseSource& noise, std::span<int64_t> sums,
             std::span<float> out);
// values[i] = factor * step * (round(values[i] / step) + noise). Values beyond 2^50 steps count as
// 2^50, which moves no two of them further apart.
void Release(const Grid& grid, double factor, noise::NoiseSource& noise, std::span<float> values);
// out[i] = factor * step * noise: the release of sums that are zero because no unit touched them.
void ReleaseNoise(const Grid& grid, double factor, noise::NoiseSource& noise, std::span<float> out);

}  // namespace tacit::mechanism
