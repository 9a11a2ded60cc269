#include "mechanism/grid.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace tacit::mechanism {
namespace {

constexpr double kMostSteps = 0x1p50;
// Added to a number of magnitude below 2^51, this leaves the number rounded to an integer in the
// low bits. The compiler makes vector code of that, but not of conversions.
constexpr double kToInteger = 0x1.8p52;
// A block of integers that stays in the first-level cache: as many as a chunk of keystream makes.
constexpr size_t kBlock = 1360;

// A NaN fails the first comparison.
double Bounded(double x) {
  x = x > -kMostSteps ? x : -kMostSteps;
  return x < kMostSteps ? x : kMostSteps;
}

int64_t Nearest(double x) {
  return std::bit_cast<int64_t>(Bounded(x) + kToInteger) - std::bit_cast<int64_t>(kToInteger);
}

double ToDouble(int64_t n) {
  constexpr auto most = static_cast<int64_t>(kMostSteps);
  n = n > -most ? n : -most;
  n = n < most ? n : most;
  return std::bit_cast<double>(n + std::bit_cast<int64_t>(kToInteger)) - kToInteger;
}

// Calls block(begin, n, source) on pieces of at most kBlock, on the workers of `noise`.
template <class Block>
void ForBlocks(size_t size, noise::NoiseSource& noise, const Block& block) {
  noise.ForParts(size, [&](size_t begin, size_t end, noise::NoiseSource& source) {
    for (; begin < end; begin += kBlock) block(begin, std::min(kBlock, end - begin), source);
  });
}

// Adds noise, then converts to floats, so that the block goes through the cache once.
void ReleaseBlock(const Grid& grid, double factor, noise::NoiseSource& noise,
                  std::span<int64_t> steps, float* out) {
  noise.AddGridGaussian(grid.stddev, steps);
  const double scale = factor * grid.step;
  for (size_t i = 0; i < steps.size(); ++i) out[i] = static_cast<float>(ToDouble(steps[i]) * scale);
}

}  // namespace

Grid MakeGrid(double clip, double stddev) {
  TACIT_CHECK(clip > 0 && stddev > 0 && std::isfinite(clip) && std::isfinite(stddev));
  const int exponent = std::max(std::ilogb(clip) - 30, std::ilogb(stddev) - 37);
  const Grid grid{.step = std::ldexp(1, exponent), .stddev = std::ldexp(stddev, -exponent)};
  TACIT_CHECK(grid.stddev >= noise::kGridStddevMin && grid.stddev <= noise::kGridStddevMax,
              "the noise is too small for its clip");
  return grid;
}

Grid MakeHistogramGrid(double clip, double noise_multiplier) {
  constexpr double kCoarser = 0x1p10;
  return MakeGrid(clip * kCoarser, clip * noise_multiplier);
}

void Release(const Grid& grid, double factor, noise::NoiseSource& noise, std::span<int64_t> sums,
             std::span<float> out) {
  TACIT_CHECK(sums.size() == out.size());
  ForBlocks(sums.size(), noise, [&](size_t begin, size_t n, noise::NoiseSource& source) {
    ReleaseBlock(grid, factor, source, sums.subspan(begin, n), out.data() + begin);
  });
}

void Release(const Grid& grid, double factor, noise::NoiseSource& noise, std::span<float> values) {
  const double per_step = 1 / grid.step;
  ForBlocks(values.size(), noise, [&](size_t begin, size_t n, noise::NoiseSource& source) {
    std::array<int64_t, kBlock> steps;
    for (size_t i = 0; i < n; ++i) steps[i] = Nearest(values[begin + i] * per_step);
    ReleaseBlock(grid, factor, source, std::span(steps).first(n), values.data() + begin);
  });
}

void ReleaseNoise(const Grid& grid, double factor, noise::NoiseSource& noise,
                  std::span<float> out) {
  noise.FillGridGaussian(grid.stddev, factor * grid.step, out);
}

}  // namespace tacit::mechanism
