// Intervals against closed forms, and against draws of what they are intervals of.
#include "base/interval.h"

#include <gtest/gtest.h>

#include <random>

namespace tacit {
namespace {

// Newcombe (1998), table I, method 3: the score interval without a correction.
TEST(IntervalTest, OfAShareIsTheLiteratures) {
  const auto expect = [](double hits, double asked, double low, double high) {
    const Interval interval = ShareInterval(hits, asked);
    EXPECT_NEAR(interval.low, low, 6e-5) << hits << " of " << asked;
    EXPECT_NEAR(interval.high, high, 6e-5) << hits << " of " << asked;
  };
  expect(81, 263, .2553, .3662);
  expect(15, 148, .0624, .1605);
  expect(0, 20, 0, .1611);
  expect(1, 29, .0061, .1718);
  EXPECT_TRUE(std::isnan(ShareInterval(0, 0).low));
  EXPECT_EQ(ShareInterval(20, 20).high, 1);
}

TEST(IntervalTest, OfAProbabilityEndsAtItsBounds) {
  const Interval interval = ProbabilityInterval(.9, .1);
  EXPECT_NEAR(interval.low, .9 - .1959964, 1e-9);
  EXPECT_EQ(interval.high, 1);
  EXPECT_TRUE(std::isnan(ProbabilityInterval(.9, NAN).low));
  EXPECT_TRUE(std::isnan(ProbabilityInterval(NAN, .1).high));
}

// The share of intervals that hold the truth, over many samples of one in ten.
double Covered(int asked, int counted_as) {
  std::mt19937_64 random(7);
  std::binomial_distribution<int> hits(asked, .1);
  constexpr int kSamples = 20'000;
  int covered = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double share = static_cast<double>(hits(random)) / asked;
    const Interval interval = ShareInterval(share * counted_as, counted_as);
    covered += interval.low <= .1 && .1 <= interval.high ? 1 : 0;
  }
  return static_cast<double>(covered) / kSamples;
}

TEST(IntervalTest, OfAShareHoldsTheTruthAsOftenAsItSays) {
  EXPECT_NEAR(Covered(200, 200), .95, .015);
  EXPECT_LT(Covered(200, 400), .90) << "planted: as if twice as many had been asked";
}

}  // namespace
}  // namespace tacit
