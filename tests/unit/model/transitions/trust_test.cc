// Tests how far the buckets of a table are believed, against the model of trust.h: integrals over
// what a bucket may be, in place of the closed forms.
#include "model/transitions/trust.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace tacit::model::transitions {
namespace {

double NormalAt(double x, double deviation) {
  return std::exp(-x * x / (2 * deviation * deviation)) /
         (deviation * std::sqrt(2 * std::numbers::pi));
}

// A bucket's likelihood under one chance and spread, and the same times what it is off by.
struct Moments {
  double likelihood = 0, moment = 0;
};
Moments IntegrateOff(double off, double expected, double deviation, double chance, double spread) {
  Moments integral{.likelihood = (1 - chance) * NormalAt(off, deviation)};
  const double wide = spread * expected;
  constexpr int kSteps = 40'000;
  const double step = 20 * wide / kSteps;
  for (int i = 0; i <= kSteps; ++i) {
    const double own = -10 * wide + step * i;
    const double share = chance * NormalAt(own, wide) * NormalAt(off - own, deviation) * step;
    integral.likelihood += share;
    integral.moment += share * own;
  }
  return integral;
}

TEST(BucketTrusts, AreTheMeanOfEverythingThatIsPossible) {
  const std::vector<float> sums = {30, -4, 11};
  const std::vector<double> expected = {5, 6, 10};
  constexpr double kDeviation = 4;
  std::array<double, 3> moments = {};
  double all = 0;
  for (double spread = 0.1; spread < 13; spread *= 2)
    for (const double chance : {0.03, 0.1, 0.3, 1.0}) {
      std::array<Moments, 3> of;
      double product = 1 / spread;
      for (size_t k = 0; k < 3; ++k) {
        of[k] = IntegrateOff(sums[k] - expected[k], expected[k], kDeviation, chance, spread);
        product *= of[k].likelihood;
      }
      all += product;
      for (size_t k = 0; k < 3; ++k) moments[k] += product * of[k].moment / of[k].likelihood;
    }
  const std::vector<double> trusts = BucketTrusts(sums, expected, kDeviation);
  for (size_t k = 0; k < 3; ++k)
    EXPECT_NEAR(trusts[k] * (sums[k] - expected[k]), moments[k] / all,
                1e-3 * std::abs(moments[k] / all))
        << k;
}

TEST(BucketTrusts, WithoutNoiseAllIsBelievedThatExpectsSomething) {
  EXPECT_EQ(BucketTrusts(std::vector<float>{3, 9, 0}, std::vector<double>{1, 0, 2}, 0),
            (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(BucketTrusts(std::vector<float>{3, 9}, std::vector<double>{1, 0}, 2)[1], 0);
  EXPECT_TRUE(BucketTrusts({}, {}, 1).empty());
}

TEST(BucketTrusts, WhatIsFarOutOfTheNoiseIsBelieved) {
  std::vector<float> sums(1000, 10);
  const std::vector<double> expected(1000, 10);
  sums[7] = 1e6, sums[8] = 100;
  const std::vector<double> trusts = BucketTrusts(sums, expected, 5);
  EXPECT_GT(trusts[7], 0.99);
  EXPECT_GT(trusts[8], 0.9);
  EXPECT_LT(trusts[9], 0.01);
}

// Mean square errors of what 3,840 buckets are off by, whose noise is several times what they
// expect. Believing each by itself is what rules 1 to 3 did.
struct Errors {
  double own = 0;  // of believing nothing
  double alone = 0, together = 0;
};
Errors Measure(double chance, double spread, double expected_of_noise) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const std::vector<double> expected(3840, expected_of_noise);
  std::vector<double> off(expected.size());
  std::vector<float> sums(expected.size());
  for (size_t k = 0; k < off.size(); ++k) {
    off[k] = uniform(random) < chance ? spread * expected[k] * normal(random) : 0;
    sums[k] = static_cast<float>(expected[k] + off[k] + normal(random));
  }
  const std::vector<double> trusts = BucketTrusts(sums, expected, 1);
  Errors errors;
  const auto square = [](double x) { return x * x; };
  for (size_t k = 0; k < off.size(); ++k) {
    const double seen = sums[k] - expected[k], e = square(expected[k]);
    errors.own += square(off[k]);
    errors.alone += square(e / (1 + e) * seen - off[k]);
    errors.together += square(trusts[k] * seen - off[k]);
  }
  return errors;
}

TEST(BucketTrusts, LoseLessThanEachBucketByItself) {
  // Nothing stands out: hardly anything is believed.
  const Errors nothing = Measure(1, 0.1, 0.5);
  EXPECT_LT(nothing.together, 0.2 * nothing.alone);
  EXPECT_LT(nothing.together, 1.2 * nothing.own);
  // One bucket in ten is several times what was expected.
  const Errors few = Measure(0.1, 6, 0.5);
  EXPECT_LT(few.together, 0.7 * few.alone);
  EXPECT_LT(few.together, 0.7 * few.own);
  // All differ by what rules 1 to 3 supposed: they are right, and little is lost.
  const Errors as_supposed = Measure(1, 1, 0.5);
  EXPECT_LT(as_supposed.together, 1.05 * as_supposed.alone);
}

}  // namespace
}  // namespace tacit::model::transitions
