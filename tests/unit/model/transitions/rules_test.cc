#include "model/transitions/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace tacit::model::transitions {
namespace {

constexpr double kWide = 3;  // a spread of popularity that leaves the signal as it is

TEST(Rules, PopularityHasMoreWhereTheSignalOfAnItemIsSmall) {
  const Options options;
  const auto share = [&](double signal) {
    return PopularityShareAt(options, signal, kWide, 1000, false);
  };
  EXPECT_EQ(share(std::numeric_limits<double>::infinity()), 0.25);
  EXPECT_EQ(share(8000), 0.25);
  EXPECT_NEAR(share(1000), 0.5, 1e-12);  // an eighth of 8 an item
  EXPECT_EQ(share(1), 0.95);
  EXPECT_EQ(share(0), 0.95);
  // It is the signal of an item that counts.
  EXPECT_EQ(PopularityShareAt(options, 300, kWide, 100, false),
            PopularityShareAt(options, 30'000, kWide, 10'000, false));
}

TEST(Rules, PopularityAndTablesNeverTakeAllOfMuSquared) {
  const Options options;
  for (const bool described : {false, true})
    for (double signal = 0; signal < 1e9; signal = signal * 1.3 + 1) {
      // In a stream the popularity's share may be of a signal that was nothing yet.
      double spent = std::pow(PopularityShareAt(options, 0, 0, 1000, described), 2);
      for (size_t table = 0; table < (described ? Buckets::kTablesMost : 1); ++table)
        spent +=
            std::pow(TableShareAt(options, static_cast<Buckets::Table>(table), signal, 1000), 2);
      EXPECT_LT(spent, 0.97) << described << ' ' << signal;
    }
}

// Sums over few buckets are heard where no item can be.
TEST(Rules, TablesOfDescriptionsHaveMoreWhereTheSignalIsSmall) {
  const Options options;
  for (const auto table : {Buckets::kYears, Buckets::kGenres, Buckets::kKinship}) {
    const auto share = [&](double signal) { return TableShareAt(options, table, signal, 1000); };
    EXPECT_EQ(share(std::numeric_limits<double>::infinity()), 0.08);
    EXPECT_EQ(share(225e3), 0.08);
    EXPECT_NEAR(share(100e3), 0.12, 1e-12);
    EXPECT_EQ(share(1e4), 0.28);
    EXPECT_EQ(share(0), 0.28);
    // It is the signal of all items together that a bucket has a part of.
    EXPECT_EQ(TableShareAt(options, table, 5e4, 10), share(5e4));
    for (double signal = 10; signal < 1e6; signal *= 1.001)
      EXPECT_NEAR(share(signal * 1.001), share(signal), 0.001 * share(signal));
  }
  EXPECT_EQ(PopularityShareAt(options, 0, 0, 1000, true), 0.85);
  EXPECT_EQ(PopularityShareAt(options, 0, 0, 1000, false), 0.95);
}

TEST(Rules, PopularityHasMoreWhereItemsHardlyDiffer) {
  const Options options;
  const auto share = [&](double spread) {
    return PopularityShareAt(options, 8000, spread, 1000, false);
  };
  EXPECT_EQ(share(100), 0.25);
  EXPECT_EQ(share(3), 0.25);
  EXPECT_NEAR(share(0.375), 0.5, 1e-12);
  EXPECT_EQ(share(0), 0.95);
  for (double spread = 0.01; spread < 10; spread *= 1.001)
    EXPECT_NEAR(share(spread * 1.001), share(spread), 0.005 * share(spread));
}

TEST(Rules, TheSpreadOfPopularityIsWithoutThatOfItsNoise) {
  EXPECT_EQ(PopularitySpread(std::vector<float>{5, 5, 5}, 0), 0);
  const std::vector<float> sums = {2, 4, 6, 8};  // a mean of 5, a variance of 5
  EXPECT_NEAR(PopularitySpread(sums, 0), std::sqrt(5.0) / 5, 1e-12);
  EXPECT_NEAR(PopularitySpread(sums, 2), 1.0 / 5, 1e-12);
  EXPECT_EQ(PopularitySpread(sums, 3), 0);
  // Noise has drowned all of it.
  EXPECT_EQ(PopularitySpread(std::vector<float>{-3, 1}, 1), 0);
  EXPECT_EQ(PopularitySpread(std::vector<float>(), 1), 0);
}

TEST(Rules, RanksHaveLessWhereTheSignalOfAnItemIsSmallest) {
  const Options options;
  const auto share = [&](double signal) {
    return TableShareAt(options, Buckets::kRanks, signal, 1000);
  };
  EXPECT_EQ(share(std::numeric_limits<double>::infinity()), 0.08);
  EXPECT_EQ(share(400), 0.08);
  EXPECT_NEAR(share(200), 0.02, 1e-15);
  EXPECT_EQ(share(1), 8e-4);
  EXPECT_EQ(share(0), 8e-4);
  EXPECT_EQ(TableShareAt(options, Buckets::kRanks, 300, 1000),
            TableShareAt(options, Buckets::kRanks, 30'000, 100'000));
  // A share that is below the least already stays.
  Options small;
  small.table_share = 1e-4;
  EXPECT_EQ(TableShareAt(small, Buckets::kRanks, 1, 1000), 1e-4);
}

TEST(Rules, MoreCellsWithMoreSignalAndItems) {
  const Options options;
  EXPECT_DOUBLE_EQ(CellsAt(options, 75e3, 3416), 1e6);
  EXPECT_DOUBLE_EQ(CellsAt(options, 2 * 75e3, 3416), 1e6 * std::pow(2, 1.4));
  EXPECT_DOUBLE_EQ(CellsAt(options, 75e3, 16 * 3416), 2e6);
  EXPECT_EQ(CellsAt(options, 0, 3416), 0);
}

TEST(Rules, WhatCameLastCountsMost) {
  Options options;
  options.recent_items = 7, options.recent_age = 2, options.recent_power = 1.5;
  const std::vector<float> weights = RecentWeights(options);
  ASSERT_EQ(weights.size(), 7u);
  EXPECT_EQ(weights[0], 1);
  EXPECT_FLOAT_EQ(weights[2], std::pow(0.5f, 1.5f));
  EXPECT_FLOAT_EQ(weights[6], 0.125f);
  EXPECT_TRUE(std::ranges::is_sorted(weights, std::greater<>()));
}

// No step of an input, however small, makes a jump: a thousandth more of it moves what follows by
// less than half a percent.
TEST(Rules, AreContinuous) {
  const Options options;
  for (const uint32_t items : {1000u, 12'101u, 1'000'000u})
    for (double signal = 1; signal < 1e8; signal *= 1.001) {
      const auto near = [](double a, double b) { return std::abs(a - b) < 0.005 * a; };
      EXPECT_TRUE(near(PopularityShareAt(options, signal, kWide, items, false),
                       PopularityShareAt(options, signal * 1.001, kWide, items, false)));
      EXPECT_TRUE(near(CellsAt(options, signal, items), CellsAt(options, signal * 1.001, items)));
      EXPECT_TRUE(near(TableShareAt(options, Buckets::kRanks, signal, items),
                       TableShareAt(options, Buckets::kRanks, signal * 1.001, items)));
      EXPECT_TRUE(near(PopularityShareAt(options, signal, kWide, items, false),
                       PopularityShareAt(options, signal, kWide, items + items / 1000, false)));
    }
}

}  // namespace
}  // namespace tacit::model::transitions
