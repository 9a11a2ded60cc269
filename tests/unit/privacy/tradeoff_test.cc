#include "privacy/tradeoff.h"

#include <gtest/gtest.h>

#include <cmath>

#include "privacy/event.h"
#include "privacy/gaussian.h"
#include "support/golden.h"

namespace tacit::privacy {
namespace {

double Phi(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

PldAccountant Sampled(double noise, double rate, uint64_t steps) {
  PldAccountant accountant(Adjacency::kAddRemove);
  EXPECT_TRUE(accountant.Add(Event::PoissonGaussian(noise, rate), steps).has_value());
  return accountant;
}

// The published figures are upper bounds on a grid of their own: ours are certified too, and lie
// within 3e-4 on the near side of them.
TEST(TradeOff, MeetsThePublishedFigures) {
  for (const auto& row : testing::ReadGoldenNumbers("tradeoff")) {
    const bool exact = row[1] == 1;
    const double slack = exact ? 1e-6 : 3e-4, over = exact ? 1e-6 : 0;
    PldAccountant accountant = Sampled(row[0], row[1], static_cast<uint64_t>(row[2]));
    const TradeOff tradeoff = TradeOff::Of(accountant).value();
    const double advantage = tradeoff.Advantage().value();
    EXPECT_LE(advantage, row[3] + over);
    EXPECT_NEAR(advantage, row[3], slack);
    EXPECT_NEAR(1 - AccuracyAtMost(advantage), row[4], slack);
    EXPECT_GE(1 - AccuracyAtMost(advantage), row[4] - over);
    const double missed = tradeoff.MissedAtLeast(0.01).value();
    EXPECT_NEAR(missed, row[5], slack);
    EXPECT_GE(missed, row[5] - over);
  }
}

// A Gaussian's trade-off is Phi(Phi^-1(1 - a) - mu); its advantage is erf(mu / sqrt(8)).
TEST(TradeOff, IsTheClosedFormOfAGaussian) {
  for (const double mu : {0.01, 0.268, 1.0, 3.0}) {
    const TradeOff tradeoff = TradeOff::OfGaussian(mu);
    EXPECT_NEAR(tradeoff.Advantage().value(), std::erf(mu / std::sqrt(8.0)), 1e-12);
    for (const double quantile : {-4.0, -2.0, -0.3, 0.0, 1.0, 2.0}) {
      const double alarms = Phi(quantile), least = Phi(-quantile - mu);
      const double missed = tradeoff.MissedAtLeast(alarms).value();
      EXPECT_NEAR(missed, least, 3e-5) << mu << " " << alarms;
      EXPECT_LE(missed, least + 1e-12) << mu << " " << alarms;
    }
  }
}

// One point of a curve bounds less than all of it, and never more.
TEST(TradeOff, APointBoundsWhatTheCurveDoes) {
  for (const double mu : {0.268, 1.0, 3.0}) {
    double best = 0;
    for (double epsilon = 0; epsilon < 6; epsilon += 0.01) {
      const double delta = GaussianDelta(mu, Epsilon(epsilon)).value;
      for (const double quantile : {-3.0, -1.0, 0.5})
        EXPECT_LE(MissedAt(epsilon, delta, Phi(quantile)), Phi(-quantile - mu) + 1e-12);
      best = std::max(best, MissedAt(epsilon, delta, Phi(-1.0)));
    }
    EXPECT_NEAR(best, Phi(1 - mu), 2e-4);  // the best of all points is the curve's
  }
  EXPECT_EQ(MissedAt(INFINITY, 1e-6, 0.01), 0);
  EXPECT_EQ(MissedAt(8, 0.995, 0.01), 0);
}

// The threshold test on a sampled Gaussian's likelihood ratio is a test like any other: in closed
// form for one step. None may do better than the bound, and the best comes near to it.
TEST(TradeOff, BoundsTheTestsOfOneSampledStep) {
  const double noise = 0.7, rate = 0.3, mu = 1 / noise;
  PldAccountant accountant = Sampled(noise, rate, 1);
  const TradeOff tradeoff = TradeOff::Of(accountant).value();
  for (double at = -1; at < 3; at += 0.37) {
    const double alarms = Phi(-at), found = (1 - rate) * Phi(-at) + rate * Phi(mu - at);
    const double missed = tradeoff.MissedAtLeast(alarms).value();
    EXPECT_LE(missed, 1 - found + 1e-9) << at;
    // There presence tells more than absence.
    if (at > 1) {
      EXPECT_NEAR(missed, 1 - found, 1e-4) << at;
    }
    // The worlds exchanged: absence is what is looked for.
    EXPECT_LE(tradeoff.MissedAtLeast(1 - found).value(), alarms + 1e-9) << at;
  }
}

// A charge that is too small by a tenth is seen: the best test does better than its bound.
TEST(TradeOff, OfTooSmallAChargeIsPassed) {
  const double missed = TradeOff::OfGaussian(0.9).MissedAtLeast(0.01).value();
  EXPECT_GT(missed, Phi(2.3263478740408408 - 1) + 1e-3);
}

TEST(PlainWords, RoundUpAndSayWhenNothingIsBounded) {
  EXPECT_EQ(
      PlainWords(std::erf(1 / std::sqrt(8.0))),
      "with all else known, somebody guesses right at most 69.2 times of 100; a coin does 50");
  EXPECT_EQ(
      PlainWords(0.38),
      "with all else known, somebody guesses right at most 69.0 times of 100; a coin does 50");
  EXPECT_EQ(
      PlainWords(0.161),
      "with all else known, somebody guesses right at most 58.1 times of 100; a coin does 50");
  EXPECT_EQ(
      PlainWords(0.002),
      "with all else known, somebody guesses right at most 50.1 times of 100; a coin does 50");
  EXPECT_EQ(
      PlainWords(0.9999),
      "with all else known, somebody guesses right at most 100.0 times of 100; a coin does 50");
  EXPECT_EQ(
      PlainWords(0),
      "with all else known, somebody guesses right at most 50.0 times of 100; a coin does 50");
  EXPECT_EQ(PlainWords(1), "with all else known, somebody may be certain whether you were in it");
}

}  // namespace
}  // namespace tacit::privacy
