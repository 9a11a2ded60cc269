#include "audit/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "audit/mu_bound.h"
#include "support/golden.h"

namespace tacit::audit {
namespace {

using ::testing::HasSubstr;

// Quantiles of N(mu, 1) for members, of N(0, 1) for others.
std::vector<Score> Quantiles(double mu) {
  std::vector<Score> scores;
  for (uint64_t i = 0; i < 1000; ++i) {
    const double z = NormalQuantile((static_cast<double>(i) + 0.5) / 1000);
    scores.push_back({2 * i, z, false});
    scores.push_back({2 * i + 1, z + mu, true});
  }
  return scores;
}

// The ROC curve's concave hull, from (0, 0) to (1, 1).
std::vector<std::pair<double, double>> HullOf(const std::vector<Score>& scores) {
  std::vector<std::pair<double, double>> points = {{0, 0}}, hull;
  std::vector<Score> falling = scores;
  std::ranges::sort(falling, std::greater<>(), &Score::value);
  for (const Score& at : falling) {
    const Counts c = CountAbove(scores, at.value);
    points.emplace_back(static_cast<double>(c.false_alarms) / static_cast<double>(c.others),
                        static_cast<double>(c.found) / static_cast<double>(c.members));
  }
  for (const auto& p : points) {
    const auto bends = [&] {
      const auto &a = hull[hull.size() - 2], &b = hull.back();
      return (b.first - a.first) * (p.second - a.second) -
             (b.second - a.second) * (p.first - a.first);
    };
    while (hull.size() >= 2 && bends() >= 0) hull.pop_back();
    hull.push_back(p);
  }
  return hull;
}

// The published areas and rates are those of the hull, which mixes tests at random. Ours are those
// of thresholds: the area is within .001 below, a rate within half a record.
TEST(Membership, MeetsThePublishedFigures) {
  for (const auto& row : tacit::testing::ReadGoldenNumbers("audit_scores")) {
    const std::vector<Score> scores = Quantiles(row[0]);
    const auto hull = HullOf(scores);
    double area = 0;
    for (size_t i = 1; i < hull.size(); ++i)
      area += (hull[i].first - hull[i - 1].first) * (hull[i].second + hull[i - 1].second) / 2;
    EXPECT_NEAR(area, row[2], 1e-6);
    EXPECT_LT(AreaUnderCurve(scores), area);
    EXPECT_NEAR(AreaUnderCurve(scores), area, 1e-3);
    EXPECT_NEAR(FoundAt(scores, 0.01), row[3], 6e-4);
    EXPECT_NEAR(FoundAt(scores, 0.001), row[4], 6e-4);
    EXPECT_NEAR(BestAccuracy(scores), row[5], 1e-9);
    EXPECT_NEAR(ProvedEpsilon(CountAbove(scores, row[0]), 0, 0.05), row[1], 1e-4);
  }
}

TEST(Membership, IsThatOfPlainLoops) {
  std::mt19937_64 random(3);
  std::vector<Score> scores;
  for (uint64_t i = 0; i < 300; ++i)  // ties among them
    scores.push_back({i, static_cast<double>(random() % 40), random() % 3 == 0});
  double above = 0, pairs = 0;
  for (const Score& a : scores)
    for (const Score& b : scores) {
      if (!a.member || b.member) continue;
      pairs += 1;
      above += a.value > b.value ? 1 : a.value == b.value ? 0.5 : 0;
    }
  EXPECT_NEAR(AreaUnderCurve(scores), above / pairs, 1e-12);
  double found = 0;
  for (double at = -1; at < 41; at += 0.5) {
    const Counts counts = CountAbove(scores, at);
    if (static_cast<double>(counts.false_alarms) <= 0.1 * static_cast<double>(counts.others))
      found =
          std::max(found, static_cast<double>(counts.found) / static_cast<double>(counts.members));
  }
  EXPECT_NEAR(FoundAt(scores, 0.1), found, 1e-12);
}

// A loader that shuffled cannot misalign an audit: what is joined is joined by id.
TEST(Membership, JoinsByIdAndSaysWhatDoesNotFit) {
  const std::vector<Score> scores = {{7, 3, true}, {9, 1, false}};
  const std::vector<Score> reference = {{9, 0.5, false}, {7, 2, true}};
  const auto less = Less(scores, reference).value();
  EXPECT_EQ(less[0].value, 1);
  EXPECT_EQ(less[1].value, 0.5);
  const auto refused = [&](std::vector<Score> other) {
    return Less(scores, other).error().message;
  };
  EXPECT_THAT(refused({{7, 2, true}}), HasSubstr("record 9"));
  EXPECT_THAT(refused({{7, 2, true}, {7, 2, true}}), HasSubstr("record 7"));
  EXPECT_THAT(refused({{7, 2, false}, {9, 0, false}}), HasSubstr("record 7"));
  EXPECT_THAT(refused({{7, 2, true}, {9, 0, false}, {8, 0, false}}), HasSubstr("3 records"));
  EXPECT_THAT(Less(std::vector<Score>{{7, 1, true}, {7, 1, true}}, std::vector<Score>{{7, 1, true}})
                  .error()
                  .message,
              HasSubstr("two scores"));
}

// The halves follow from ids alone: other scores and coins make the same ones.
TEST(Membership, HalvesFollowFromIds) {
  std::vector<Score> scores = Quantiles(1), others = scores;
  for (Score& score : others) score.value = -score.value, score.member = !score.member;
  std::ranges::reverse(others);
  const Halves a = Split(scores, 5), b = Split(others, 5);
  std::vector<uint64_t> of_a, of_b;
  for (const Score& score : a.judged) of_a.push_back(score.id);
  for (const Score& score : b.judged) of_b.push_back(score.id);
  std::ranges::sort(of_a);
  std::ranges::sort(of_b);
  EXPECT_EQ(of_a, of_b);
  EXPECT_NEAR(static_cast<double>(of_a.size()), 1000, 100);
}

TEST(Membership, OfScoresOfOneKindNothingIsProved) {
  const std::vector<Score> members = {{1, 2, true}, {2, 3, true}, {3, 3, true}};
  EXPECT_EQ(BoundBySplit(members, 1, 0.05).mu, 0);
}

// Both intervals have the truth in all but few of 400 audits; planted: an interval of half the
// length does not.
TEST(Membership, IntervalsHoldTheTruth) {
  constexpr double kMu = 1, kAlpha = 0.05;
  const double area = std::erfc(-kMu / 2) / 2;                           // Phi(1 / sqrt 2)
  const double found = std::erfc(-(kMu - 3.0902) / std::sqrt(2.0)) / 2;  // Phi(1 - 3.09)
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  int area_missed = 0, found_missed = 0, wrongly_missed = 0;
  for (int audit = 0; audit < 400; ++audit) {
    std::vector<Score> scores;
    for (uint64_t id = 0; id < 600; ++id)
      scores.push_back({id, normal(random) + (id % 2 == 0 ? kMu : 0), id % 2 == 0});
    const Interval interval = AreaInterval(scores, kAlpha);
    area_missed += area < interval.lower || area > interval.upper;
    const FoundBySplit split = FoundAtBySplit(scores, 0.001, 7, kAlpha);
    // The threshold is the one that the half of choice made: its own rate of alarms bounds it.
    found_missed += found > split.truth.upper && split.false_alarms_upper < 0.001;
    const double seen = AreaUnderCurve(scores), off = (interval.upper - seen) / 6;
    wrongly_missed += std::abs(seen - area) > off;
  }
  EXPECT_LE(area_missed, 20 + 4 * 5);
  EXPECT_LE(found_missed, 20 + 4 * 5);
  EXPECT_GT(wrongly_missed, 40);
}

}  // namespace
}  // namespace tacit::audit
