#include "audit/mu_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tacit::audit {
namespace {

TEST(Rates, AreThoseOfTheClosedForms) {
  // Without a hit, (1 - p)^n = alpha.
  EXPECT_NEAR(RateUpper(0, 1000, 1e-9), 1 - std::pow(1e-9, 1e-3), 1e-12);
  EXPECT_EQ(RateLower(0, 1000, 1e-9), 0);
  // With nothing but hits, p^n = alpha.
  EXPECT_NEAR(RateLower(1000, 1000, 1e-9), std::pow(1e-9, 1e-3), 1e-12);
  EXPECT_EQ(RateUpper(1000, 1000, 1e-9), 1);
  // 2 of 5: P(at least 2) = 1 - (1 - p)^5 - 5 p (1 - p)^4.
  const double p = RateLower(2, 5, 0.025);
  EXPECT_NEAR(1 - std::pow(1 - p, 5) - 5 * p * std::pow(1 - p, 4), 0.025, 1e-10);
}

// N(0, 1) against N(mu, 1): what a mechanism that costs exactly mu shows at most.
MuBound OfGaussians(double mu, double alpha, uint64_t runs) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> without(20'000), with(20'000);
  for (double& value : without) value = normal(random);
  for (double& value : with) value = normal(random) + mu;
  const Threshold threshold = ChooseThreshold(without, with);
  Tally tally_without, tally_with;
  for (uint64_t i = 0; i < runs; ++i) {
    tally_without.Add(normal(random), threshold);
    tally_with.Add(normal(random) + mu, threshold);
  }
  return BoundMu(tally_without, tally_with, alpha);
}

TEST(MuTest, IsUnderTheTruthAndNear) {
  for (double mu : {0.0, 0.27, 1.0, 3.0}) {
    const MuBound bound = OfGaussians(mu, 1e-9, 200'000);
    EXPECT_LT(bound.lower, mu);
    EXPECT_GT(bound.lower, mu - 0.1);
    EXPECT_NEAR(bound.estimate, mu, 0.06);
    EXPECT_NEAR(bound.shift, mu, 0.02);
  }
}

// The bound is one of probability 2 alpha at most: of 400 audits at alpha = 2 %, 16 are expected to
// be above the truth, and 36 or more have the probability 8e-6. Clopper and Pearson, and two rates
// that must both err, keep it far lower.
TEST(MuTest, ErrsAsRarelyAsItSays) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  constexpr double kMu = 0.5;
  int above = 0;
  for (int audit = 0; audit < 400; ++audit) {
    Tally without, with;
    for (int i = 0; i < 1000; ++i) {
      without.Add(normal(random), {.at = kMu / 2});
      with.Add(normal(random) + kMu, {.at = kMu / 2});
    }
    above += BoundMu(without, with, 0.02).lower > kMu;
  }
  EXPECT_LT(above, 36);
}

TEST(MuTest, SeesWhatIsRareButTelling) {
  // One value in fifty gives the canary away, and is never seen without it.
  std::vector<double> without(10'000, 0.0), with(10'000, 0.0);
  for (size_t i = 0; i < with.size(); i += 25) with[i] = -1;
  const Threshold threshold = ChooseThreshold(without, with);
  EXPECT_TRUE(threshold.Says(-1));
  EXPECT_FALSE(threshold.Says(0));
}

TEST(MuTest, ProvesNothingOfWhatIsAlwaysTheSame) {
  const Threshold threshold = ChooseThreshold({1, 1, 1}, {1, 1, 1});
  Tally without, with;
  for (int i = 0; i < 1000; ++i) {
    without.Add(1, threshold);
    with.Add(1, threshold);
  }
  EXPECT_LT(BoundMu(without, with, 1e-6).lower, 0);
}

}  // namespace
}  // namespace tacit::audit
