// A period's noised sums: no unit moves them by more than the clip, every number has the noise that
// is charged, and the fast release of a large table draws from the law of the slow one. Each test
// is also shown to find the fault that it is there for.
#include "mechanism/row_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "mechanism/grid_tail.h"
#include "norm.h"
#include "support/fixed_noise.h"
#include "support/flat_sums.h"
#include "support/key_watch.h"
#include "support/silent_noise.h"
#include "support/statistics.h"

namespace tacit::mechanism {
namespace {

using ::testing::ElementsAre;
using testing::Flat;
using testing::FlatSums;

constexpr SumTable kWhole{.first = 0, .rows = 50};  // the place of a row is its number

RowSums Whole(const RowSumsOptions& options) { return {options, std::span(&kWhole, 1)}; }

// Weights of both signs that are far apart, some cells more than once.
UnitVector RandomUnit(size_t cells, std::mt19937_64& random) {
  UnitVector unit(cells);
  for (size_t n = random() % 80; n > 0; --n) {
    const double size = std::exp(std::uniform_real_distribution<>(-12, 12)(random));
    unit.Add(static_cast<uint32_t>(random() % cells), random() % 2 ? size : -size);
  }
  return unit;
}

double Length(const UnitVector& unit) {
  double squares = 0;
  for (const double w : unit.weights()) squares += w * w;
  return std::sqrt(squares);
}

TEST(RowSums, NoUnitIsLongerThanTheClip) {
  std::mt19937_64 random(1);
  for (const double clip : {0.3, 1.0, 5.2})
    for (const double multiplier : {0.0, 0.05, 1.0, 300.0})
      for (int i = 0; i < 300; ++i) {
        RowSums sums = Whole({.clip = clip, .noise_multiplier = multiplier, .numbers = 2});
        const UnitVector unit = RandomUnit(sums.cells(), random);
        EXPECT_EQ(sums.Add(unit), Length(unit) > clip * (1 + 1e-6));
        EXPECT_LE(Norm(sums.sums(), sums.step()), clip);
        if (Length(unit) > clip) {
          EXPECT_GT(Norm(sums.sums(), sums.step()), 0.999 * clip) << "it is used up";
        }
      }
}

// Numbers that a double hardly holds are clipped like any others.
TEST(RowSums, WeightsOfAnySizeAreClipped) {
  for (const double size : {1e308, 1e200, 1.0, 1e-300, 5e-324, 0.0}) {
    RowSums sums = Whole({.clip = 1, .noise_multiplier = 1});
    UnitVector unit(sums.cells());
    for (uint32_t cell = 0; cell < 4; ++cell) unit.Add(cell, cell % 2 ? -size : size);
    sums.Add(unit);
    EXPECT_LE(Norm(sums.sums(), sums.step()), 1) << size;
    EXPECT_EQ(Norm(sums.sums(), sums.step()) > 0.99, size >= 1) << size;
  }
}

TEST(RowSums, AShorterUnitKeepsItsNumbers) {
  const SumTable tables[] = {{.first = 0, .rows = 3}, {.first = 5, .rows = 9, .every_row = false}};
  RowSums sums({.clip = 2, .noise_multiplier = 0, .numbers = 1}, tables);
  const uint32_t later = sums.Touch(8), earlier = sums.Touch(6);
  UnitVector unit(sums.cells());
  unit.Add(sums.SumOf(1), -0.75);
  unit.Add(sums.CountOf(1), 0.25);
  unit.Add(sums.CountOf(1), 0.25);
  unit.Add(sums.CountOf(later), 0.125);
  unit.Add(RowSums::Number(0), 1.5);
  EXPECT_FALSE(sums.Add(unit));
  noise::SilentNoise silent;
  EXPECT_EQ(sums.CountTouched(), 2u);
  EXPECT_EQ(earlier, later + 1) << "places are in the order of touching, rows are not";
  const FlatSums released = Flat(std::move(sums).Release(silent));
  EXPECT_THAT(released.rows, ElementsAre(0, 1, 2, 6, 8)) << "without noise: all, or the touched";
  EXPECT_THAT(released.sums, ElementsAre(0, -0.75, 0, 0, 0));
  EXPECT_THAT(released.counts, ElementsAre(0, 0.5, 0, 0, 0.125));
  EXPECT_THAT(released.numbers, ElementsAre(1.5));
}

// The planted fault: sums are paid for, and counts come with them unpaid.
TEST(RowSums, SumsAndCountsAreOneVector) {
  const RowSumsOptions options{.clip = 1, .noise_multiplier = 1};
  RowSums together = Whole(options), sums_alone = Whole(options), counts_alone = Whole(options);
  UnitVector both(together.cells()), sums(together.cells()), counts(together.cells());
  for (uint32_t place = 0; place < 10; ++place) {
    both.Add(together.SumOf(place), 0.7);
    sums.Add(together.SumOf(place), 0.7);
    both.Add(together.CountOf(place), 0.4);
    counts.Add(together.CountOf(place), 0.4);
  }
  together.Add(both);
  sums_alone.Add(sums);
  counts_alone.Add(counts);
  EXPECT_LE(Norm(together.sums(), together.step()), 1);
  const double unpaid = std::hypot(Norm(sums_alone.sums(), sums_alone.step()),
                                   Norm(counts_alone.sums(), counts_alone.step()));
  EXPECT_GT(unpaid, 1.4) << "the norm tells";
}

TEST(RowSums, UnitsAddUpWhicheverThreadTheyComeFrom) {
  constexpr size_t kThreads = 4, kUnits = 200;
  const RowSumsOptions options{.clip = 1, .noise_multiplier = 1};
  RowSums together = Whole(options);
  std::vector<int64_t> sum(together.cells());
  std::vector<std::vector<UnitVector>> units(kThreads);
  std::mt19937_64 random(2);
  for (auto& mine : units)
    for (size_t i = 0; i < kUnits; ++i) {
      mine.push_back(RandomUnit(together.cells(), random));
      RowSums one = Whole(options);
      one.Add(mine.back());
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += one.sums()[c];
    }
  std::vector<std::thread> threads;
  for (const auto& mine : units)
    threads.emplace_back([&] {
      for (const UnitVector& unit : mine) together.Add(unit);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::ranges::equal(together.sums(), sum));
}

// A table released whole: noise of the charge's multiplier on every number, each its own.
struct WholeRelease {
  std::vector<double> sums, counts, numbers;  // in deviations of the noise, without the data
};
enum class WholeFault { kNone, kNoiseShared, kUntouchedSilent, kTooQuiet };
WholeRelease DrawWhole(WholeFault fault) {
  constexpr uint64_t kRows = 200'000;
  const SumTable table{.first = 7, .rows = kRows};
  const RowSumsOptions options{.clip = 5.2, .noise_multiplier = 1.7, .numbers = 2};
  RowSums sums(options, std::span(&table, 1));
  UnitVector unit(sums.cells());
  for (uint32_t place = 0; place < 200; place += 2) {
    unit.Add(sums.SumOf(place), -0.25);
    unit.Add(sums.CountOf(place), 0.125);
  }
  sums.Add(unit);
  const double deviation = sums.deviation();
  EXPECT_EQ(deviation, 5.2 * 1.7);
  EXPECT_EQ(sums.charge().noise_multiplier, 1.7);
  EXPECT_EQ(sums.charge().mechanism, privacy::MechanismKind::kSums);
  auto noise = noise::FixedNoise(3);
  const FlatSums released = Flat(std::move(sums).Release(noise));
  EXPECT_EQ(released.rows.size(), kRows);
  WholeRelease drawn;
  for (uint64_t i = 0; i < kRows; ++i) {
    EXPECT_EQ(released.rows[i], 7 + i);
    const bool data = i % 2 == 0 && i / 2 < 100;
    drawn.sums.push_back((released.sums[i] + (data ? 0.25 : 0)) / deviation);
    drawn.counts.push_back((released.counts[i] - (data ? 0.125 : 0)) / deviation);
    if (fault == WholeFault::kNoiseShared) drawn.counts.back() = drawn.sums.back();
    if (fault == WholeFault::kUntouchedSilent && i % 2 == 1) drawn.sums.back() = 0;
    if (fault == WholeFault::kTooQuiet) drawn.sums.back() *= 0.98;
  }
  return drawn;
}
std::string CheckWhole(const WholeRelease& drawn) {
  std::string wrong;
  for (const auto* z : {&drawn.sums, &drawn.counts})
    wrong += testing::CheckMoments(*z) + testing::CheckTails(*z) +
             testing::CheckDistribution(*z, testing::NormalCdf);
  return wrong + testing::CheckUncorrelated(drawn.sums, drawn.counts);
}

TEST(RowSumsNoise, EveryNumberOfAWholeTableHasItsOwn) {
  EXPECT_EQ(CheckWhole(DrawWhole(WholeFault::kNone)), "");
  for (const WholeFault fault :
       {WholeFault::kNoiseShared, WholeFault::kUntouchedSilent, WholeFault::kTooQuiet})
    EXPECT_NE(CheckWhole(DrawWhole(fault)), "") << static_cast<int>(fault);
}

TEST(RowSumsNoise, FurtherNumbersHaveItToo) {
  std::vector<double> z;
  auto noise = noise::FixedNoise(4);
  for (int i = 0; i < 20'000; ++i) {
    RowSums sums({.clip = 2, .noise_multiplier = 3, .numbers = 2}, {});
    const ReleasedSums released = std::move(sums).Release(noise);
    for (const double number : released.numbers()) z.push_back(number / 6);
  }
  EXPECT_EQ(testing::CheckMoments(z) + testing::CheckDistribution(z, testing::NormalCdf), "");
}

TEST(GridTail, DrawsAreOfTheNoiseAboveTheThreshold) {
  for (const double stddev : {200.0, 1e5})
    for (const double deviations : {-1.0, 0.5, 2.0, 5.5}) {
      const auto threshold = static_cast<int64_t>(deviations * stddev);
      const double all = noise::GridGaussianTail(stddev, threshold);
      constexpr size_t kCells = 60, kDraws = 100'000;
      const auto width = static_cast<int64_t>(stddev / 15);
      std::vector<uint64_t> counts(kCells), shifted(kCells);
      std::vector<double> p;
      for (size_t i = 0; i < kCells; ++i) {
        const auto from = threshold + static_cast<int64_t>(i) * width;
        p.push_back((noise::GridGaussianTail(stddev, from) -
                     noise::GridGaussianTail(stddev, from + width)) /
                    all);
      }
      auto noise = noise::FixedNoise(5);
      for (size_t i = 0; i < kDraws; ++i) {
        const int64_t drawn = GridGaussianAbove(stddev, threshold, noise);
        ASSERT_GE(drawn, threshold);
        const auto cell = static_cast<size_t>((drawn - threshold) / width);
        if (cell < kCells) ++counts[cell];
        // The fault: an exponential where a normal's tail is wanted.
        const double wrong = -std::log(noise.Uniform()) * stddev / std::max(deviations, 0.5);
        if (wrong < static_cast<double>(kCells) * static_cast<double>(width))
          ++shifted[static_cast<size_t>(wrong / static_cast<double>(width))];
      }
      EXPECT_EQ(testing::CheckCounts(counts, p, kDraws), "") << stddev << " " << deviations;
      EXPECT_NE(testing::CheckCounts(shifted, p, kDraws), "") << stddev << " " << deviations;
    }
}

// A table that is not released whole, against noise on all of it and a comparison. Rows 0 and 1 are
// touched, one above and one below the threshold.
struct Draws {
  uint64_t periods = 0;
  std::map<uint64_t, uint64_t> kept;  // per row
  std::vector<double> sums, counts;   // of untouched rows that are kept, in deviations
  std::vector<double> touched_sums, touched_counts;  // of row 0
};
enum class AboveFault { kNone, kCountDropped, kSumSilent, kNoiseShared, kTouchedTwice };

constexpr uint64_t kRows = 1000, kPeriods = 20'000;
constexpr double kThreshold = 2.2, kDeviation = 3;
constexpr double kSum = 1.5, kCount[2] = {2.4, 0.3};  // of rows 0 and 1; their norm is below 3

Draws DrawFast() {
  const SumTable table{.first = 0, .rows = kRows, .every_row = false};
  auto noise = noise::FixedNoise(6);
  Draws draws;
  draws.periods = kPeriods;
  for (uint64_t period = 0; period < kPeriods; ++period) {
    RowSums sums(
        {.clip = 3, .noise_multiplier = kDeviation / 3, .threshold_deviations = kThreshold},
        std::span(&table, 1));
    const uint32_t place[] = {sums.Touch(0), sums.Touch(1)};
    UnitVector unit(sums.cells());
    for (size_t row = 0; row < 2; ++row) unit.Add(sums.CountOf(place[row]), kCount[row]);
    unit.Add(sums.SumOf(place[0]), kSum);
    sums.Add(unit);
    const FlatSums released = Flat(std::move(sums).Release(noise));
    EXPECT_TRUE(std::ranges::is_sorted(released.rows, std::less_equal<>())) << "and distinct";
    for (size_t i = 0; i < released.rows.size(); ++i) {
      const uint64_t row = released.rows[i];
      ++draws.kept[row];
      if (row > 1) draws.sums.push_back(released.sums[i] / kDeviation);
      if (row > 1) draws.counts.push_back(released.counts[i] / kDeviation);
      if (row == 0) draws.touched_sums.push_back((released.sums[i] - kSum) / kDeviation);
      if (row == 0) draws.touched_counts.push_back((released.counts[i] - kCount[0]) / kDeviation);
    }
  }
  return draws;
}

// Noise on every row, then a comparison; with faults.
Draws DrawSlow(AboveFault fault, uint64_t periods) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  Draws draws;
  draws.periods = periods;
  for (uint64_t period = 0; period < periods; ++period)
    for (uint64_t row = 0; row < kRows; ++row) {
      const double data = row < 2 ? kCount[row] / kDeviation : 0;
      const double z = normal(random);
      const bool again =
          fault == AboveFault::kTouchedTwice && row < 2 && normal(random) >= kThreshold;
      if (data + z < kThreshold && !again) continue;
      ++draws.kept[row];
      double sum = normal(random), count = z;
      if (fault == AboveFault::kSumSilent && row > 1) sum = 0;
      if (fault == AboveFault::kNoiseShared) sum = z;
      if (fault == AboveFault::kCountDropped && row > 1) count = kThreshold;
      if (row == 1) continue;
      (row == 0 ? draws.touched_sums : draws.sums).push_back(sum);
      (row == 0 ? draws.touched_counts : draws.counts).push_back(count);
    }
  return draws;
}

std::string CheckAbove(const Draws& draws) {
  const auto above = [](double lower) {
    return [lower](double x) {
      const double tail = testing::NormalCdf(-lower);
      return x < lower ? 0 : 1 - testing::NormalCdf(-x) / tail;
    };
  };
  std::string wrong =
      testing::CheckMoments(draws.sums) +
      testing::CheckDistribution(draws.sums, testing::NormalCdf) +
      testing::CheckDistribution(draws.counts, above(kThreshold)) +
      testing::CheckDistribution(draws.touched_sums, testing::NormalCdf) +
      testing::CheckDistribution(draws.touched_counts, above(kThreshold - kCount[0] / kDeviation));
  uint64_t others = 0;
  for (const auto& [row, times] : draws.kept) {
    const double data = row < 2 ? kCount[row] / kDeviation : 0;
    if (row < 2)
      wrong += testing::CheckBinomial("a touched row", times, draws.periods,
                                      testing::NormalCdf(data - kThreshold));
    else
      others += times;
  }
  wrong += testing::CheckBinomial("untouched rows", others, draws.periods * (kRows - 2),
                                  testing::NormalCdf(-kThreshold));
  // Sum and count of a row are independent: the sum has mean 0 for any count.
  double product = 0, squares = 0;
  for (size_t i = 0; i < draws.sums.size(); ++i) {
    product += draws.sums[i] * draws.counts[i];
    squares += draws.counts[i] * draws.counts[i];
  }
  return wrong + testing::CheckDeviation("sum by count", product, 0, std::sqrt(squares));
}

TEST(RowSumsThreshold, IsTheLawOfNoiseOnEveryRow) {
  EXPECT_EQ(CheckAbove(DrawFast()), "");
  EXPECT_EQ(CheckAbove(DrawSlow(AboveFault::kNone, 4000)), "") << "the check itself";
}

TEST(RowSumsThreshold, FaultsAreFound) {
  for (const AboveFault fault : {AboveFault::kCountDropped, AboveFault::kSumSilent,
                                 AboveFault::kNoiseShared, AboveFault::kTouchedTwice})
    EXPECT_NE(CheckAbove(DrawSlow(fault, kPeriods / 2)), "") << static_cast<int>(fault);
}

// Work is that of the rows that are kept: a table of 2^40 rows is no more than a small one.
TEST(RowSumsThreshold, ALargeTableCostsNothing) {
  const SumTable table{.first = 0, .rows = uint64_t{1} << 40, .every_row = false};
  RowSums sums({.clip = 1, .noise_multiplier = 1, .threshold_deviations = 7.5},
               std::span(&table, 1));
  const uint32_t place = sums.Touch(5);
  sums.Touch(uint64_t{1} << 39);
  UnitVector unit(sums.cells());
  unit.Add(sums.CountOf(place), 1);
  for (int i = 0; i < 100; ++i) sums.Add(unit);
  auto noise = noise::FixedNoise(8);
  const FlatSums released = Flat(std::move(sums).Release(noise));
  EXPECT_TRUE(std::ranges::binary_search(released.rows, 5u));
  EXPECT_LT(released.rows.size(), 10u) << "2^40 rows give .04 false ones";
}

TEST(RowSumsNoise, EveryReleaseHasAKeyOfItsOwn) {
  noise::KeyWatch noise;
  (void)Whole({.clip = 1, .noise_multiplier = 1}).Release(noise);
  EXPECT_GT(noise.asked, 0) << "an empty period is released like any other";
}

TEST(RowSumsDeath, WhatIsNoUnitOfTheQueryIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto add = [&](size_t cells, double weight) {
    RowSums sums = Whole({.clip = 1, .noise_multiplier = 1});
    UnitVector unit(cells);
    unit.Add(0, weight);
    sums.Add(unit);
  };
  EXPECT_DEATH(add(5, 1), "another query");
  EXPECT_DEATH(add(100, std::nan("")), "weight");
  EXPECT_DEATH(add(100, std::numeric_limits<double>::infinity()), "weight");
  EXPECT_DEATH(Whole({}).Touch(99), "outside");
  EXPECT_DEATH(Whole({}).Touch(3), "from the start");
  const SumTable large{.first = 0, .rows = 9, .every_row = false};
  const auto touch_twice = [&] {
    RowSums sums({.clip = 1}, std::span(&large, 1));
    sums.Touch(3);
    sums.Touch(3);
    noise::SilentNoise silent;
    (void)std::move(sums).Release(silent);
  };
  EXPECT_DEATH(touch_twice(), "touched once");
  RowSums sums = Whole({.clip = 1});
  const double weight = 0.1;
  const ColumnWeights columns({.clip = 1}, {&weight, 1}, {&weight, 1});
  const uint32_t outside = 50;
  EXPECT_DEATH(sums.Add(columns, std::span(&outside, 1), 1, {}), "does not have");
}

// A unit of columns adds what its cells would, to the last step, whether it is cut or not. The
// planted fault looks at no norm: then the longest unit is longer than the clip.
TEST(RowSums, UnitsOfColumnsAddTheirCells) {
  std::mt19937_64 random(3);
  const SumTable tables[] = {{.first = 0, .rows = 20}, {.first = 20, .rows = 30}};
  double longest = 0, longest_uncut = 0;
  uint64_t cut = 0;
  for (int i = 0; i < 2000; ++i) {
    const double spread = i % 2 ? 0.02 : 1;  // around the longest that fits, or any
    const auto about = [&](double x) {
      return x * (1 + spread * (std::uniform_real_distribution<>(-1, 1)(random)));
    };
    const std::vector<double> of_sums = {about(0.5), about(0.5)}, of_counts = {about(0.4), 0.4};
    const double factor = about(random() % 2 ? 1 : -1);
    const std::vector<double> numbers = {about(0.4), about(-0.2)};
    const RowSumsOptions options{.clip = 1, .noise_multiplier = 1, .numbers = 2};
    const ColumnWeights columns(options, of_sums, of_counts);
    RowSums fast(options, tables), slow(options, tables);
    const std::vector<uint32_t> places = {static_cast<uint32_t>(random() % 20),
                                          static_cast<uint32_t>(20 + random() % 30)};
    UnitVector unit(slow.cells());
    for (size_t j = 0; j < 2; ++j) {
      unit.Add(slow.SumOf(places[j]), of_sums[j] * factor);
      unit.Add(slow.CountOf(places[j]), of_counts[j]);
    }
    for (size_t k = 0; k < 2; ++k) unit.Add(RowSums::Number(k), numbers[k]);
    const bool clipped = slow.Add(unit);
    ASSERT_EQ(fast.Add(columns, places, factor, numbers), clipped);
    ASSERT_TRUE(std::ranges::equal(fast.sums(), slow.sums()));
    longest = std::max(longest, Norm(fast.sums(), fast.step()));
    longest_uncut = std::max(longest_uncut, Length(unit));
    cut += clipped;
  }
  EXPECT_LE(longest, 1);
  EXPECT_GT(longest_uncut, 1.01);
  EXPECT_GT(cut, 200u);
  EXPECT_LT(cut, 1800u);
}

}  // namespace
}  // namespace tacit::mechanism
