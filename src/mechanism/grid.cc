#include "mechanism/grid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "mechanism/nearest.h"

namespace tacit::mechanism {
namespace {

// A block of integers that stays in the first-level cache: as many as a chunk of keystream makes.
constexpr size_t kBlock = 1360;

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
