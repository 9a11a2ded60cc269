#include "mechanism/unit_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "mechanism/contribution.h"
#include "mechanism/unit_vector.h"
#include "noise/noise.h"
#include "norm.h"
#include "support/fixed_noise.h"
#include "support/key_watch.h"
#include "support/statistics.h"

namespace tacit::mechanism {
namespace {

constexpr size_t kCells = 500;

// Some cells, several of them more than once, of weights that are far apart.
UnitVector RandomUnit(std::mt19937_64& random) {
  UnitVector unit(kCells);
  for (size_t n = random() % 800; n > 0; --n)
    unit.Add(static_cast<uint32_t>(random() % kCells),
             std::exp(std::uniform_real_distribution<>(-12, 12)(random)));
  return unit;
}

TEST(UnitHistogram, NoUnitIsLongerThanOne) {
  std::mt19937_64 random(1);
  for (const double multiplier : {0.0, 0.01, 1.0, 300.0, 1e6})
    for (int i = 0; i < 200; ++i) {
      const UnitVector unit = RandomUnit(random);
      UnitHistogram histogram(kCells, multiplier);
      histogram.Add(unit);
      const double norm = Norm(histogram.sums(), histogram.step());
      EXPECT_LE(norm, 1);
      if (!unit.cells().empty() && multiplier <= 1) {
        EXPECT_GT(norm, 0.999) << "it is used up";
      }
    }
}

// The fault: a cell that comes twice is taken for two, which the sum is not.
TEST(UnitHistogram, ACellThatComesTwiceIsOne) {
  UnitVector unit(kCells);
  for (const uint32_t cell : {7u, 7u, 7u}) unit.Add(cell, 1);
  UnitHistogram histogram(kCells, 1);
  histogram.Add(unit);
  EXPECT_LE(Norm(histogram.sums(), histogram.step()), 1);

  const std::vector<double> apart = {1, 1, 1};
  const double scale = ContributionScale(1, MakeHistogramGrid(1, 1), apart);
  std::vector<int64_t> sums(kCells);
  for (const double weight : apart) sums[7] += StepsAt(weight, scale);
  EXPECT_GT(Norm(sums, histogram.step()), 1.7) << "the norm tells";
}

TEST(UnitHistogram, UnitsAddUpWhicheverThreadTheyComeFrom) {
  constexpr size_t kThreads = 4, kUnits = 300;
  UnitHistogram together(kCells, 1), alone(kCells, 1);
  std::vector<int64_t> sum(kCells);
  std::vector<std::vector<UnitVector>> units(kThreads);
  std::mt19937_64 random(2);
  for (auto& mine : units)
    for (size_t i = 0; i < kUnits; ++i) {
      mine.push_back(RandomUnit(random));
      alone.Add(mine.back());
      UnitHistogram one(kCells, 1);
      one.Add(mine.back());
      for (size_t c = 0; c < kCells; ++c) sum[c] += one.sums()[c];
    }
  std::vector<std::thread> threads;
  for (const auto& mine : units)
    threads.emplace_back([&] {
      for (const UnitVector& unit : mine) together.Add(unit);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::ranges::equal(together.sums(), sum));
  EXPECT_TRUE(std::ranges::equal(alone.sums(), sum));
}

// Noise of its multiplier on every cell; one that is off by 3 % fails the same test.
TEST(UnitHistogram, WhatIsReleasedHasTheNoiseThatIsCharged) {
  constexpr size_t kMany = 100'000;
  for (const double multiplier : {0.3, 2.0, 500.0}) {
    UnitHistogram histogram(kMany, multiplier);
    UnitVector unit(kMany);
    for (uint32_t cell = 0; cell < 100; ++cell) unit.Add(cell, 1);
    histogram.Add(unit);
    const privacy::Charge charge = histogram.charge();
    EXPECT_EQ(charge.noise_multiplier, multiplier);
    EXPECT_EQ(charge.sampling_rate, 1);
    const auto noise = std::make_unique<noise::FixedNoise>(1);
    const std::vector<float> released = std::move(histogram).Release(*noise);
    std::vector<double> z;
    for (size_t cell = 0; cell < kMany; ++cell)
      z.push_back((released[cell] - (cell < 100 ? 0.1 : 0)) / charge.noise_multiplier);
    EXPECT_EQ(testing::CheckMoments(z), "");
    for (double& value : z) value *= 0.97;
    EXPECT_NE(testing::CheckMoments(z), "");
  }
}

// A new key comes before the first noise: a copy of the process draws other noise.
TEST(UnitHistogram, EveryReleaseHasAKeyOfItsOwn) {
  noise::KeyWatch noise;
  (void)UnitHistogram(kCells, 1).Release(noise);
  EXPECT_GT(noise.asked, 0);
}

TEST(UnitHistogramDeath, WhatIsNoUnitOfTheQueryIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  UnitHistogram histogram(kCells, 1);
  const auto add = [&](size_t cells, uint32_t cell, double weight) {
    UnitVector unit(cells);
    unit.Add(cell, weight);
    histogram.Add(unit);
  };
  EXPECT_DEATH(add(kCells, kCells, 1), "does not have");
  EXPECT_DEATH(add(kCells + 1, 0, 1), "another query");
  EXPECT_DEATH(add(kCells, 0, -1), "weight");
  EXPECT_DEATH(add(kCells, 0, std::nan("")), "weight");
  EXPECT_DEATH(add(kCells, 0, std::numeric_limits<double>::infinity()), "weight");
}

}  // namespace
}  // namespace tacit::mechanism
