#include "mechanism/grid_tail.h"

#include <cmath>

#include "noise/grid_gaussian.h"

namespace tacit::mechanism {

int64_t GridGaussianAbove(double stddev, int64_t threshold, noise::NoiseSource& noise) {
  // d is uniform on `width` integers, half_width the largest of them. The width divides 2^53, so
  // that each is equally likely.
  const int bits = noise::DitherBits(stddev);
  const double width = std::ldexp(1, bits);
  const int64_t half_width = int64_t{1} << (bits - 1);
  // floor(stddev z) + d >= threshold needs stddev z >= threshold - half_width. Most draws pass:
  // the dither is a 64th of the deviation at most.
  const double least = static_cast<double>(threshold - half_width) / stddev;
  for (;;) {
    const auto whole = static_cast<int64_t>(std::floor(stddev * noise.GaussianTail(least)));
    const auto dither = static_cast<int64_t>(noise.Uniform() * width) + 1 - half_width;
    if (whole + dither >= threshold) return whole + dither;
  }
}

}  // namespace tacit::mechanism
