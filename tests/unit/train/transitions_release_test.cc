#include "train/counts/transitions_release.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <tuple>

#include "mechanism/contribution.h"
#include "mechanism/unit_histogram.h"
#include "model/transitions/scorer.h"
#include "privacy/gaussian.h"
#include "scribe.h"
#include "support/silent_noise.h"
#include "support/single_release.h"
#include "unit/model/transitions/world.h"

namespace tacit::train {
namespace {

using model::Histories;
using model::transitions::Options;
using model::transitions::PublicItems;
using model::transitions::SomeHistories;
using model::transitions::SomeTexts;
using model::transitions::With;

constexpr uint32_t kItems = 60;

// Returns the signal that a first look at popularity sees where mu is 1.
double FirstSignal(std::span<const int64_t> released) {
  return kStep * static_cast<double>(std::accumulate(released.begin(), released.end(), int64_t{0}));
}

// Returns how far the first look's items differ, beyond its noise, over their mean.
double FirstSpread(std::span<const int64_t> released, double deviation) {
  const auto count = static_cast<double>(released.size());
  const double mean = FirstSignal(released) / count;
  double square = 0;
  for (const int64_t sum : released) square += std::pow(kStep * static_cast<double>(sum) - mean, 2);
  return std::sqrt(std::max(0.0, square / count - deviation * deviation)) / mean;
}

class ReleaseTest : public ::testing::Test {
 protected:
  ReleaseTest() {
    options_.cells_at_signal = 4000, options_.signal_unit = 500, options_.items_power = 0;
    options_.share_signal = 0;  // one look at popularity
  }

  TransitionsRelease Release(const Histories& histories, const PublicItems& catalogue, double mu,
                             noise::NoiseSource& noise) {
    auto release = ReleaseTransitions(histories, catalogue, options_, mu, noise, workers_);
    EXPECT_TRUE(release) << release.error().message;
    return std::move(*release);
  }

  Options options_;
  const PublicItems described_{SomeTexts(kItems, 3)}, plain_{kItems};
  const Histories histories_ = SomeHistories(kItems, 200, 60, 1);
  WorkerPool workers_{{.workers = 2}};
};

TEST_F(ReleaseTest, AllQueriesTogetherAreTheOneGaussianThatWasPaidFor) {
  for (const bool described : {true, false}) {
    for (const double epsilon : {0.1, 1.0, 5.0, 10.0, 40.0}) {
      const double mu = privacy::GaussianMu(Epsilon(epsilon), Delta(1e-5));
      auto noise = noise::FixedNoise(1);
      Scribe scribe(noise);
      const auto release = Release(histories_, described ? described_ : plain_, mu, scribe);
      ASSERT_EQ(release.charge.queries.size(), described ? 8u : 5u);
      // By the noise that was really asked for.
      double mu_squared = 0;
      for (const double stddev : scribe.asked().stddev) mu_squared += 1 / (stddev * stddev);
      EXPECT_LE(mu_squared, mu * mu);
      EXPECT_NEAR(mu_squared, mu * mu, 1e-9 * mu * mu) << "and nothing is wasted";
      EXPECT_NEAR(release.charge.MuSquared(), mu_squared, 1e-12 * mu_squared);
      for (size_t q = 0; q < release.charge.queries.size(); ++q)
        EXPECT_DOUBLE_EQ(release.charge.queries[q].noise_multiplier, scribe.asked().stddev[q]);
      EXPECT_LE(privacy::GaussianEpsilon(std::sqrt(release.charge.MuSquared()), Delta(1e-5)).value,
                epsilon);
    }
  }
}

TEST_F(ReleaseTest, OneUserMovesEachQueryByAtMostOne) {
  for (const bool described : {true, false}) {
    const PublicItems& catalogue = described ? described_ : plain_;
    auto noise = noise::FixedNoise(2);
    Scribe first(noise);
    Release(histories_, catalogue, 3, first);
    double most = 0, least = 1;
    for (const size_t unit : {3, 17, 40, 77, 123, 199}) {
      Scribe without(noise, &first.asked());
      Release(With(histories_, unit, {}), catalogue, 3, without);
      for (const double move : Moves(first.asked(), without.asked())) {
        EXPECT_LE(move, 1) << "unit " << unit;
        if (histories_.Of(unit).size() > 10) least = std::min(least, move);
        most = std::max(most, move);
      }
      // Replaced: vectors that are not below 0 are not further apart than sqrt(2).
      Scribe replaced(noise, &first.asked());
      Release(With(histories_, unit, {9, 8, 7, 6, 9, 8, 7, 1, 0}), catalogue, 3, replaced);
      for (const double move : Moves(first.asked(), replaced.asked()))
        EXPECT_LE(move, std::sqrt(2));
    }
    EXPECT_GT(most, 0.999) << "the norm is used up";
    EXPECT_GT(least, 0.9);
  }
}

// The fault: cells that no unit touched stay as they are.
class OnlyTouched final : public noise::SilentNoise {
 public:
  explicit OnlyTouched(noise::NoiseSource& noise) : noise_(noise) {}
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    for (int64_t& value : values)
      if (value != 0) noise_.AddGridGaussian(stddev, std::span(&value, 1));
  }

 private:
  noise::NoiseSource& noise_;
};

TEST_F(ReleaseTest, EveryCellHasNoiseTouchedOrNot) {
  for (const bool described : {true, false}) {
    const PublicItems& catalogue = described ? described_ : plain_;
    for (const Histories& histories : {histories_, SomeHistories(kItems, 5, 8, 1)}) {
      auto noise = noise::FixedNoise(3);
      Scribe scribe(noise);
      Release(histories, catalogue, 3, scribe);
      EXPECT_EQ(CheckEveryCell(scribe.asked()), "");
      OnlyTouched fault(noise);
      Scribe planted(fault);
      Release(histories, catalogue, 3, planted);
      EXPECT_NE(CheckEveryCell(planted.asked()), "");
    }
  }
}

TEST_F(ReleaseTest, NobodyAtAllIsReleasedLikeAnybody) {
  Histories nobody;
  nobody.catalogue = kItems;
  auto noise = noise::FixedNoise(4);
  Scribe scribe(noise);
  const auto release = Release(nobody, described_, 1, scribe);
  EXPECT_EQ(CheckEveryCell(scribe.asked()), "");
  EXPECT_NEAR(release.charge.MuSquared(), 1, 1e-9);
}

// The measurements get what the tables leave of mu.
TEST_F(ReleaseTest, WhereItemsHardlyStandOutRanksHaveLessAndWhatIsDescribedHasMore) {
  // The signal is some 700, 12 an item.
  for (const auto& [unit, of_all] :
       {std::pair(0.0, 0.0), {100.0, 0.0}, {1e9, 0.0}, {0.0, 2e3}, {100.0, 2e3}, {1e9, 225e3}}) {
    options_.ranks_signal = unit, options_.tables_signal = of_all;
    auto noise = noise::FixedNoise(9);
    Scribe scribe(noise);
    const auto release = Release(histories_, described_, 1, scribe);
    EXPECT_NEAR(release.charge.MuSquared(), 1, 1e-9);
    EXPECT_EQ(CheckEveryCell(scribe.asked()), "");
    const auto& asked = scribe.asked();
    ASSERT_EQ(release.charge.queries.size(), 8u);
    const double signal = FirstSignal(asked.released[0]);
    const double part = std::min(1.0, signal / (unit * kItems)),
                 ranks = std::max(8e-4, 0.08 * part * part);
    EXPECT_NEAR(1 / asked.stddev[1], ranks, 1e-5 * ranks);
    EXPECT_EQ(release.model->tables()[0].deviation, asked.stddev[1]);
    const double other = std::min(0.28, 0.08 * std::sqrt(std::max(1.0, of_all / signal)));
    for (const size_t table : {2, 3, 4}) EXPECT_NEAR(1 / asked.stddev[table], other, 1e-5 * other);
    const double rest = 1 - 0.25 * 0.25 - 3 * other * other - ranks * ranks;
    EXPECT_NEAR(1 / asked.stddev[5], std::sqrt(0.34 * rest), 1e-6);
    if (unit == 1e9) {
      EXPECT_NEAR(ranks, 8e-4, 1e-12);
    }
    EXPECT_EQ(other > 0.08, of_all > 0);
    EXPECT_EQ(other == 0.28, of_all == 225e3);
  }
}

// A second look at popularity: what both looks saw is what the model has, by their precision, and
// they cost together what one of that precision would.
TEST_F(ReleaseTest, WherePopularityHardlyStandsOutItIsLookedAtTwice) {
  // The first look sees a signal of some 700 (200 users of up to 60 items, mu of 1), 12 an item.
  for (const double unit : {1.0, 100.0, 1e9}) {
    options_.share_signal = unit;
    auto noise = noise::FixedNoise(9);
    Scribe scribe(noise);
    const auto release = Release(histories_, plain_, 1, scribe);
    EXPECT_NEAR(release.charge.MuSquared(), 1, 1e-9);
    EXPECT_EQ(CheckEveryCell(scribe.asked()), "");
    const auto& asked = scribe.asked();
    const auto& popularity = release.model->popularity_sums();
    if (unit == 1) {
      ASSERT_EQ(release.charge.queries.size(), 5u);
      EXPECT_EQ(popularity.deviation, asked.stddev[0]);
      continue;
    }
    ASSERT_EQ(release.charge.queries.size(), 6u);
    EXPECT_EQ(asked.sums[0], asked.sums[1]);  // of the same people
    const double first = 1 / std::pow(asked.stddev[0], 2),
                 second = 1 / std::pow(asked.stddev[1], 2), both = first + second;
    EXPECT_NEAR(popularity.deviation, 1 / std::sqrt(both), 1e-9 * popularity.deviation);
    const double differs =
        std::min(1.0, FirstSpread(asked.released[0], asked.stddev[0]) / options_.share_spread);
    const double signal = differs * FirstSignal(asked.released[0]);
    const double share =
        std::min(0.95, 0.25 * std::cbrt(unit * kItems / signal));  // of mu, which is 1
    EXPECT_NEAR(std::sqrt(both), share, 1e-5);
    if (unit == 1e9) {
      EXPECT_NEAR(share, 0.95, 1e-12);
    }
    for (uint32_t item = 0; item < kItems; ++item)
      EXPECT_NEAR(popularity.sums[item],
                  (first * static_cast<double>(asked.released[0][item]) +
                   second * static_cast<double>(asked.released[1][item])) *
                      kStep / both,
                  1e-3);
  }
}

// The measurements against loops in float64, given the cells.
TEST_F(ReleaseTest, TheFirstMeasurementIsTheSumOfUnitVectors) {
  auto noise = noise::FixedNoise(5);
  Scribe scribe(noise);
  const auto release = Release(histories_, plain_, 3, scribe);
  const auto& cells = release.estimate().cells();
  std::vector<double> expected(cells.size());
  for (size_t u = 0; u < histories_.units(); ++u) {
    const auto items = histories_.Of(u);
    std::map<uint32_t, double> vector;
    for (size_t i = 0; i < items.size(); ++i)
      for (size_t j = i + 1; j < items.size() && j <= i + 10; ++j) {
        const uint32_t place = items[i] == items[j] ? cells.kNone : cells.Find(items[i], items[j]);
        if (place != cells.kNone) vector[place] += std::pow(0.8, j - i - 1);
      }
    double square = 0;
    for (const auto& [place, weight] : vector) square += weight * weight;
    for (const auto& [place, weight] : vector) expected[place] += weight / std::sqrt(square);
  }
  const auto& sums = scribe.asked().sums[2];
  ASSERT_EQ(sums.size(), cells.size());
  for (size_t i = 0; i < sums.size(); ++i)
    ASSERT_NEAR(static_cast<double>(sums[i]) * kStep, expected[i], 200 * kStep);
}

TEST_F(ReleaseTest, WithoutNoiseTheWeightsAreTheCounts) {
  noise::SilentNoise silence;
  const auto release =
      Release(histories_, plain_, std::numeric_limits<double>::infinity(), silence);
  for (const auto& charge : release.charge.queries) EXPECT_FALSE(charge.Bounded());
  EXPECT_EQ(release.charge.MuSquared(), std::numeric_limits<double>::infinity());
  double sum = 0, norm = 0;
  for (const float weight : release.estimate().weights()) sum += weight;
  for (size_t u = 0; u < histories_.units(); ++u) {
    const auto items = histories_.Of(u);
    std::map<std::pair<uint32_t, uint32_t>, double> vector;
    for (size_t i = 0; i < items.size(); ++i)
      for (size_t j = i + 1; j < items.size() && j <= i + 10; ++j)
        if (items[i] != items[j]) vector[{items[i], items[j]}] += std::pow(0.8, j - i - 1);
    double square = 0, all = 0;
    for (const auto& [pair, weight] : vector) square += weight * weight, all += weight;
    if (square > 0) norm += all / std::sqrt(square);
  }
  EXPECT_NEAR(sum, norm, 1e-3 * norm);
}

// It learns: with little noise the habit of the histories is what is recommended.
TEST_F(ReleaseTest, TheHabitOfTheHistoriesIsRecommended) {
  auto noise = noise::FixedNoise(6);
  const auto release = Release(SomeHistories(kItems, 3000, 60, 8), plain_, 10, noise);
  const model::transitions::Scorer scorer(release.estimate(), options_, workers_);
  std::vector<float> scores(kItems);
  size_t right = 0;
  for (uint32_t item = 0; item + 1 < kItems; ++item) {
    const std::vector<uint32_t> history = {item};
    scorer.Score(history, scores);
    std::vector<uint32_t> order(kItems);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, std::greater<>(), [&](uint32_t b) { return scores[b]; });
    const auto end = order.begin() + 5;
    right += std::find(order.begin(), end, item + 1) != end ? 1 : 0;
  }
  EXPECT_GT(right, kItems * 3 / 4);
}

// The smallest catalogues: no pair at all, and two.
TEST_F(ReleaseTest, ACatalogueOfOneItemOrTwoIsReleasedLikeAnyOther) {
  for (const uint32_t items : {1u, 2u})
    for (const bool described : {true, false})
      for (const double mu : {3.0, std::numeric_limits<double>::infinity()}) {
        const Histories histories = SomeHistories(items, 50, 10, 4);
        const PublicItems catalogue =
            described ? PublicItems(SomeTexts(items, 3)) : PublicItems(items);
        auto noise = noise::FixedNoise(8);
        Scribe scribe(noise);
        const auto release = Release(histories, catalogue, mu, scribe);
        if (std::isfinite(mu)) {
          EXPECT_NEAR(release.charge.MuSquared(), mu * mu, 1e-9 * mu * mu);
          EXPECT_EQ(CheckEveryCell(scribe.asked()), "");
        }
        const model::transitions::Scorer scorer(release.estimate(), options_, workers_);
        std::vector<float> scores(items);
        scorer.Score(std::vector<uint32_t>{0}, scores);
        for (const float score : scores) EXPECT_TRUE(std::isfinite(score));
      }
}

TEST_F(ReleaseTest, WhatCannotBeIsRefused) {
  auto noise = noise::FixedNoise(7);
  const auto other =
      ReleaseTransitions(histories_, PublicItems(kItems + 1), options_, 1, noise, workers_);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "the histories are of a catalogue of 60 items, and 61 are described");
  const auto outside =
      ReleaseTransitions(With(histories_, 9, {0, kItems}), plain_, options_, 1, noise, workers_);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().message, "histories: unit 9: item 60 of a catalogue of 60");
  Histories nobodys = histories_;
  nobodys.items.push_back(0);
  EXPECT_FALSE(ReleaseTransitions(nobodys, plain_, options_, 1, noise, workers_));
  for (const double mu : {0.0, -1.0, 1e-9, 1e9, std::nan("")})
    EXPECT_FALSE(ReleaseTransitions(histories_, plain_, options_, mu, noise, workers_)) << mu;
}

TEST(ContributionScale, TheStepsAreNeverLongerThanTheClip) {
  std::mt19937_64 random(9);
  for (const double multiplier : {0.1, 1.0, 50.0}) {
    const mechanism::Grid grid = mechanism::MakeHistogramGrid(1, multiplier);
    for (int i = 0; i < 300; ++i) {
      std::vector<double> weights(1 + random() % 2000);
      for (double& weight : weights)
        weight =
            random() % 3 == 0 ? 0 : std::exp(std::uniform_real_distribution<>(-20, 20)(random));
      weights[0] = 1e-9;
      const double scale = mechanism::ContributionScale(1, grid, weights);
      uint64_t square = 0;
      for (const double weight : weights) {
        const auto steps = static_cast<uint64_t>(mechanism::StepsAt(weight, scale));
        square += steps * steps;
      }
      const auto whole = static_cast<uint64_t>(1 / grid.step);
      EXPECT_LE(square, whole * whole);
      // Rounding down costs at most a step a number.
      EXPECT_GT(std::sqrt(static_cast<double>(square)),
                static_cast<double>(whole) * (1 - 0x1p-20) - std::sqrt(weights.size()) - 1);
    }
    EXPECT_EQ(mechanism::ContributionScale(1, grid, std::vector<double>(5)), 0);
    EXPECT_EQ(mechanism::ContributionScale(1, grid, {}), 0);
    EXPECT_EQ(mechanism::ContributionScale(1, grid, std::vector<double>{5e-324}), 0);
  }
}

}  // namespace
}  // namespace tacit::train
