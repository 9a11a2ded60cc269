#include "privacy/gaussian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "privacy/infinity.h"
#include "support/golden.h"

namespace tacit::privacy {
namespace {

TEST(GaussianLogDelta, MatchesSixtyDigits) {
  for (const auto& row : testing::ReadGoldenNumbers("gaussian_exact")) {
    const double mu = row[1] / row[0];
    EXPECT_NEAR(GaussianLogDelta(mu, row[2]), row[4], 1e-12 * std::abs(row[4]))
        << "mu " << mu << " epsilon " << row[2];
  }
}

TEST(GaussianEpsilon, MatchesSixtyDigitsAndIsNeverBelow) {
  for (const auto& row : testing::ReadGoldenNumbers("gaussian_inverse")) {
    const double epsilon = GaussianEpsilon(row[1] / row[0], Delta(row[2])).value;
    EXPECT_NEAR(epsilon, row[3], 1e-10 * row[3]);
    EXPECT_GE(epsilon, row[3]);
  }
}

TEST(CalibrateGaussian, MatchesSixtyDigitsAndIsNeverBelow) {
  for (const auto& row : testing::ReadGoldenNumbers("gaussian_sigma")) {
    const double sigma = CalibrateGaussian(Epsilon(row[0]), Delta(row[1]), 1).value;
    EXPECT_NEAR(sigma, row[3], 1e-10 * row[3]);
    EXPECT_GE(sigma, row[3]);
  }
}

// delta(0) = 2 Phi(mu / 2) - 1 = erf(mu / sqrt(8)), over all magnitudes of mu.
TEST(GaussianLogDelta, IsTheTotalVariationAtEpsilonZero) {
  for (double mu = 1e-9; mu < 30; mu *= 1.7)
    EXPECT_NEAR(GaussianLogDelta(mu, 0), std::log(std::erf(mu / std::sqrt(8.0))),
                1e-12 * std::abs(std::log(std::erf(mu / std::sqrt(8.0)))) + 1e-15)
        << mu;
}

// The derivative of delta in mu is phi(epsilon / mu - mu / 2): across every branch of the
// evaluation a difference quotient must agree with it.
TEST(GaussianLogDelta, HasTheRightSlopeEverywhere) {
  for (double mu : {1e-6, 0.01, 0.3, 0.49, 0.51, 1.0, 2.5, 7.0, 30.0})
    for (double a = -3.0; a < 30; a += 0.37) {
      const double epsilon = mu * (a + mu / 2);
      if (epsilon < 0) continue;
      const double h = 1e-5 * mu;
      const double up = GaussianLogDelta(mu + h, epsilon);
      const double down = GaussianLogDelta(mu - h, epsilon);
      const double middle = GaussianLogDelta(mu, epsilon);
      const double log_density = -a * a / 2 - std::log(2 * M_PI) / 2;
      const double slope = std::exp(log_density - middle);
      EXPECT_NEAR((up - down) / (2 * h) / slope, 1, 2e-6) << "mu " << mu << " a " << a;
    }
}

TEST(GaussianEpsilon, AndMuAreInverse) {
  for (double mu : {1e-6, 0.003, 0.2, 1.0, 5.0, 80.0, 3e4})
    for (double delta : {1e-300, 1e-100, 1e-12, 1e-6, 1e-3, 0.3, 0.9}) {
      const Epsilon epsilon = GaussianEpsilon(mu, Delta(delta));
      if (epsilon.value == 0) {
        EXPECT_LE(GaussianDelta(mu, Epsilon(0)).value, delta);
        continue;
      }
      EXPECT_NEAR(GaussianLogDelta(mu, epsilon.value), std::log(delta),
                  4e-12 * std::abs(std::log(delta)) + 1e-12);
      EXPECT_NEAR(GaussianMu(epsilon, Delta(delta)), mu, 1e-9 * mu);
    }
}

TEST(CalibrateGaussian, KeepsTheBudgetWhenParticipationsAreSummed) {
  for (uint64_t participations : {1u, 3u, 10u, 1000u})
    for (double epsilon : {0.1, 1.0, 8.0, 50.0}) {
      const double sigma = CalibrateGaussian(Epsilon(epsilon), Delta(1e-6), participations).value;
      double mu_squared = 0;
      for (uint64_t i = 0; i < participations; ++i) mu_squared += 1 / sigma / sigma;
      const double spent = GaussianEpsilon(std::sqrt(mu_squared), Delta(1e-6)).value;
      EXPECT_LE(spent, epsilon);
      EXPECT_NEAR(spent, epsilon, 1e-9 * epsilon);
    }
}

TEST(Gaussian, HoldsAtTheEnds) {
  EXPECT_EQ(GaussianEpsilon(0, Delta(1e-6)).value, 0);
  EXPECT_EQ(GaussianEpsilon(kInfinity, Delta(1e-6)).value, kInfinity);
  EXPECT_EQ(GaussianLogDelta(0, 1), -kInfinity);
  EXPECT_EQ(GaussianLogDelta(kInfinity, 1), 0);
  EXPECT_EQ(GaussianDelta(1e-300, Epsilon(1)).value, 0);
  EXPECT_EQ(GaussianMu(Epsilon(kInfinity), Delta(0.1)), kInfinity);
  EXPECT_GT(GaussianMu(Epsilon(0), Delta(1e-9)), 0);
}

}  // namespace
}  // namespace tacit::privacy
