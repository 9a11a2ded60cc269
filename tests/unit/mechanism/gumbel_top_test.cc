#include "mechanism/choice/gumbel_top.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "naive.h"
#include "support/fixed_noise.h"
#include "support/statistics.h"

namespace tacit::mechanism {
namespace {

TEST(Gumbel, IsGumbelAndAnExponentialIsFoundOut) {
  auto noise = noise::FixedNoise(11);
  const auto cdf = [](double x) { return std::exp(-std::exp(-x)); };
  std::vector<double> sample(1000000);
  for (double& x : sample) x = DrawGumbel(noise);
  EXPECT_EQ(testing::CheckDistribution(sample, cdf), "");
  for (double& x : sample) x = -std::log(noise.Uniform());
  EXPECT_NE(testing::CheckDistribution(sample, cdf), "");
}

struct Race {
  std::vector<uint64_t> rows;
  std::vector<double> scores;
  uint64_t space = 0, k = 0;
  double scale = 1;
};

using Rows = std::vector<uint64_t>;

Rows Fast(const Race& race, noise::NoiseSource& noise) {
  GumbelTop top;
  std::vector<uint8_t> kept;
  Rows chosen;
  top.Choose(race.rows, race.scores, race.space, race.k, race.scale, noise, &kept, &chosen);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  for (size_t i = 0; i < race.rows.size(); ++i)
    if (kept[i]) chosen.push_back(race.rows[i]);
  std::sort(chosen.begin(), chosen.end());
  EXPECT_EQ(std::adjacent_find(chosen.begin(), chosen.end()), chosen.end());
  EXPECT_EQ(chosen.size(), std::min(race.k, race.space));
  return chosen;
}

// A Gumbel for every row of the space, or for the listed ones alone; and the k largest.
Rows Naive(const Race& race, bool all_race, Random& random) {
  std::vector<double> noisy(race.space);
  if (all_race)
    for (double& score : noisy) score = race.scale * random.Gumbel();
  for (size_t i = 0; i < race.rows.size(); ++i)
    noisy[race.rows[i]] = race.scores[i] + race.scale * random.Gumbel();
  Rows order(race.space);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return noisy[a] > noisy[b]; });
  order.resize(std::min(race.k, race.space));
  std::sort(order.begin(), order.end());
  return order;
}

// Reports the differences in how often each set was drawn.
std::string Compare(const std::function<Rows()>& a, const std::function<Rows()>& b) {
  std::map<Rows, std::pair<double, double>> counts;
  for (size_t i = 0; i < 100000; ++i) {
    ++counts[a()].first;
    ++counts[b()].second;
  }
  std::string wrong;
  for (const auto& [set, count] : counts)
    wrong += testing::CheckDeviation("a set", count.first, count.second,
                                     std::sqrt(count.first + count.second));
  return wrong;
}

// Fifteen sets: a false alarm has probability 6e-7.
TEST(GumbelTop, DrawsTheSetsThatTheNaiveOneDraws) {
  const Race race{.rows = {0, 3, 4}, .scores = {1.5, 0.0, 0.7}, .space = 6, .k = 2, .scale = 0.8};
  auto noise = noise::FixedNoise(11);
  Random random(5);
  const auto fast = [&] { return Fast(race, noise); };
  EXPECT_EQ(Compare(fast, [&] { return Naive(race, true, random); }), "");
  EXPECT_NE(Compare(fast, [&] { return Naive(race, false, random); }), "");
  Race louder = race;
  louder.scale = 0.85;
  EXPECT_NE(Compare(fast, [&] { return Naive(louder, true, random); }), "");
}

// No naive one could be run here, so the closed form is the reference: rows are taken one after the
// other with probabilities proportional to exp(score / scale) (Plackett and Luce).
TEST(GumbelTop, HoldsOnAHundredMillionRows) {
  constexpr double kSpace = 1e8, kDraws = 100000, kScale = 0.25;
  const std::vector<double> weight = {5e7, 1e8, 1e7};
  Race race{.rows = {0, 50, 99'999'999},
            .scores = {},
            .space = static_cast<uint64_t>(kSpace),
            .k = 2,
            .scale = kScale};
  for (double w : weight) race.scores.push_back(kScale * std::log(w));
  const double others = kSpace - 3, all = 1.6e8 + others;
  auto noise = noise::FixedNoise(11);
  std::vector<double> kept(3);
  double other = 0, place = 0;
  for (size_t i = 0; i < kDraws; ++i) {
    for (uint64_t row : Fast(race, noise)) {
      const auto at = std::find(race.rows.begin(), race.rows.end(), row);
      if (at != race.rows.end()) {
        ++kept[static_cast<size_t>(at - race.rows.begin())];
      } else {
        ++other;
        place += static_cast<double>(row) / kSpace;
      }
    }
  }
  double expected_other = 2;
  for (size_t i = 0; i < 3; ++i) {
    double p = weight[i] / all * (1 + others / (all - 1));
    for (size_t j = 0; j < 3; ++j)
      if (j != i) p += weight[j] / all * weight[i] / (all - weight[j]);
    expected_other -= p;
    EXPECT_EQ(testing::CheckDeviation("kept", kept[i], kDraws * p, std::sqrt(kDraws * p * (1 - p))),
              "");
  }
  // The number of others in a draw is 0, 1 or 2: its variance is below 1.
  EXPECT_EQ(testing::CheckDeviation("others", other, kDraws * expected_other, std::sqrt(kDraws)),
            "");
  EXPECT_EQ(testing::CheckDeviation("place", place / other, 0.5, std::sqrt(1 / 12.0 / other)), "");
}

TEST(GumbelTop, HoldsAtItsEnds) {
  auto noise = noise::FixedNoise(11);
  EXPECT_EQ(Fast({.rows = {}, .scores = {}, .space = 4, .k = 4}, noise), (Rows{0, 1, 2, 3}));
  EXPECT_EQ(Fast({.rows = {1, 2}, .scores = {5, 6}, .space = 4, .k = 9}, noise),
            (Rows{0, 1, 2, 3}));
  EXPECT_EQ(Fast({.rows = {0, 1, 2}, .scores = {0, 1e9, 2e9}, .space = 3, .k = 2}, noise),
            (Rows{1, 2}));
  EXPECT_EQ(Fast({.rows = {2}, .scores = {1e9}, .space = 3, .k = 1, .scale = 1e-3}, noise),
            (Rows{2}));
  for (int i = 0; i < 100; ++i)
    EXPECT_LT(Fast({.rows = {7}, .scores = {-1e9}, .space = 8, .k = 7}, noise).back(), 7u);
}

TEST(GumbelTop, CostsWhatTheTheoremSays) {
  EXPECT_DOUBLE_EQ(GumbelTop::Rho(100, 0.2), 0.5);
  EXPECT_DOUBLE_EQ(GumbelTop::Epsilon(100, 0.5), 0.2);
}

}  // namespace
}  // namespace tacit::mechanism
