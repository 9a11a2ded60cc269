#include "mechanism/grid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "noise/stream_noise.h"
#include "step.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "support/statistics.h"

namespace tacit::mechanism {
namespace {

// Adds the same known integers to all that it is given.
class KnownNoise final : public noise::SilentNoise {
 public:
  void AddGridGaussian(double, std::span<int64_t> values) override {
    for (int64_t& value : values) value += static_cast<int64_t>(next_++ * 1000003 % 4096) - 2048;
  }
  void AddGaussian(double, std::span<float>) override { ADD_FAILURE() << "noise off the grid"; }

 private:
  uint64_t next_ = 0;
};

TEST(Grid, IsAPowerOfTwoOnWhichNoiseAndSumsFit) {
  for (const double clip : {1e-6, 0.3, 1.0, 1.5, 1000.0})
    for (const double sigma : {1e-6, 0.2, 1.0, 50.0, 1000.0, 1e9}) {
      const Grid grid = MakeGrid(clip, clip * sigma);
      EXPECT_EQ(std::ldexp(1, std::ilogb(grid.step)), grid.step);
      EXPECT_EQ(grid.stddev * grid.step, clip * sigma);
      EXPECT_GE(grid.stddev, noise::kGridStddevMin);
      EXPECT_LE(grid.stddev, noise::kGridStddevMax);
      EXPECT_LE(grid.step, std::max(clip, clip * sigma / 128) * 0x1p-30);
      EXPECT_GT(clip / grid.step, sigma > 128 ? 0 : 0x1p29);
    }
}

TEST(GridDeath, NoiseFarBelowTheClipIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)MakeGrid(1, 0x1p-24), "too small");
  EXPECT_DEATH((void)MakeGrid(0, 1), "clip");
}

TEST(Grid, ReleasedIsTheNoisyIntegerAndNothingElse) {
  const Grid grid{.step = 0x1p-10, .stddev = 1000};
  std::mt19937_64 random(4);
  std::vector<float> values(5000);
  for (float& value : values) value = static_cast<float>(random() % 1000000) / 3e4f - 15;
  std::vector<int64_t> sums;
  for (float value : values) sums.push_back(std::llrint(double{value} * 0x1p10));
  std::vector<int64_t> noisy = sums;
  KnownNoise reference, first, second;
  reference.AddGridGaussian(0, noisy);
  std::vector<float> from_floats = values, from_sums(sums.size());
  Release(grid, 0.3, first, from_floats);
  Release(grid, 0.3, second, sums, from_sums);
  EXPECT_EQ(sums, noisy);
  EXPECT_EQ(from_floats, from_sums);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(from_sums[i], static_cast<float>(static_cast<double>(noisy[i]) * (0.3 * 0x1p-10)));
}

// Rows that no unit touched: no input, the same noise. Also through the blocks that a source
// without a kernel of its own takes.
TEST(Grid, NoiseAloneIsTheReleaseOfZeros) {
  const Grid grid = MakeGrid(0.7, 0.9);
  for (const size_t n : {1u, 2u, 1359u, 1360u, 1361u, 5000u}) {
    std::vector<float> noise_alone(n, 3), zeros(n, 0);
    auto first = noise::FixedNoise(5), second = noise::FixedNoise(5);
    ReleaseNoise(grid, 0.3, first, noise_alone);
    Release(grid, 0.3, second, zeros);
    EXPECT_EQ(noise_alone, zeros) << n;
    KnownNoise third, fourth;
    std::vector<float> known(n, 3), known_zeros(n, 0);
    ReleaseNoise(grid, 0.3, third, known);
    Release(grid, 0.3, fourth, known_zeros);
    EXPECT_EQ(known, known_zeros) << n;
  }
}

// Cut into any parts of a release, every number has its own noise and only its own sum.
TEST(Grid, AReleaseOnWorkersReachesEveryNumber) {
  WorkerPool pool({.workers = 2});
  const auto noise = noise::MakeNoiseSource(pool);
  const Grid grid = MakeGrid(1, 1);
  constexpr size_t kSize = 200001;
  std::vector<float> values(kSize), from_sums(kSize), alone(kSize);
  std::vector<int64_t> sums(kSize);
  for (size_t i = 0; i < kSize; ++i) {
    values[i] = static_cast<float>(i % 1000);
    sums[i] = static_cast<int64_t>(static_cast<double>(values[i]) / grid.step);
  }
  const std::vector<float> before = values;
  Release(grid, 2, *noise, values);
  Release(grid, 2, *noise, sums, from_sums);
  ReleaseNoise(grid, 2, *noise, alone);
  for (const auto* released : {&values, &from_sums, &alone}) {
    std::vector<double> z;
    for (size_t i = 0; i < kSize; ++i)
      z.push_back(((*released)[i] - (released == &alone ? 0 : 2 * before[i])) / 2);
    EXPECT_EQ(testing::CheckDistribution(z, testing::NormalCdf), "");
  }
}

TEST(Grid, WhatIsBeyondItIsBounded) {
  const Grid grid{.step = 1, .stddev = 1000};
  constexpr float kMax = std::numeric_limits<float>::max();
  std::vector<float> values = {kMax, -kMax, HUGE_VALF, -HUGE_VALF, std::nanf(""), 0x1p50f};
  KnownNoise noise;
  Release(grid, 1, noise, values);
  for (float value : values) EXPECT_NEAR(std::abs(value), 0x1p50, 5000);
  EXPECT_GT(values[0], 0);
  EXPECT_LT(values[1], 0);
  EXPECT_GT(values[2], 0);
  EXPECT_LT(values[3], 0);
  std::vector<int64_t> sums = {int64_t{1} << 60, -(int64_t{1} << 60)};
  std::vector<float> out(2);
  Release(grid, 1, noise, sums, out);
  EXPECT_EQ(out, (std::vector<float>{0x1p50f, -0x1p50f}));
}

// For any batch, every number of an update is a whole number of steps: two neighbours' outputs
// lie on the same points, and the attack on float noise has nothing to work with.
TEST(AdaFest, EveryNumberOfAnUpdateLiesOnThePublicGrid) {
  RowSpace space;
  space.AddTable("t", 8, 3);
  // A divisor that is a power of two, so that dividing loses nothing.
  const AdaFestOptions options = {.sigma_selection = 1,
                                  .sigma_gradient = 0.01,
                                  .clip_selection = 1,
                                  .clip_gradient = 0x1p-3,
                                  .threshold = -2,
                                  .expected_batch = 4};
  const auto mechanism = MakeAdaFest(space, options);
  const double step = MakeGrid(0x1p-3, 0x1p-3 * 0.01).step / 4;
  const auto noise = noise::MakeNoiseSource();
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  size_t numbers = 0, on_finer_floats = 0;
  for (int i = 0; i < 2000; ++i) {
    StepUnits units(random() % 4);
    for (UnitGradient& unit : units) {
      for (size_t k = 0; k < kDenseSize; ++k) unit.dense.push_back(normal(random));
      unit.rows[random() % 8] = {normal(random), normal(random), normal(random)};
    }
    const Update update = RunStep(*mechanism, space, units, *noise);
    std::vector<double> all = update.dense;
    all.insert(all.end(), update.values.begin(), update.values.end());
    for (double value : all) {
      ASSERT_EQ(value / step, std::floor(value / step)) << value;
      ++numbers;
      // A float of this size could lie between two points.
      on_finer_floats += std::abs(value) < step * 0x1p23;
    }
  }
  EXPECT_GT(numbers, 20000u);
  EXPECT_GT(on_finer_floats, numbers / 10);
}

}  // namespace
}  // namespace tacit::mechanism
