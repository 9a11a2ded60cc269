// Histograms of predictions: without noise they give the exact figures to the width of a bin, and
// with noise figures as far away as the deviation beside them says.
#include "base/score_histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/auc.h"

namespace tacit {
namespace {

struct Predictions {
  std::vector<float> logits, labels;
  double predicted = 0, clicks = 0;
};

// Predictions that know something of their labels, and are too high by 10 %.
Predictions Draw(size_t events, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  Predictions drawn;
  for (size_t i = 0; i < events; ++i) {
    const double logit = -1 + 1.2 * normal(random), p = 1 / (1 + std::exp(-logit));
    const bool clicked = uniform(random) < p / 1.1;
    drawn.logits.push_back(static_cast<float>(logit));
    drawn.labels.push_back(clicked ? 1 : 0);
    drawn.predicted += p;
    drawn.clicks += clicked ? 1 : 0;
  }
  return drawn;
}

ReleasedScores::Counts Count(const Predictions& drawn, uint32_t bins) {
  const ScoreBins of(bins);
  ReleasedScores::Counts counts{
      .windows = 1, .misses = std::vector<double>(bins), .clicks = std::vector<double>(bins)};
  for (size_t i = 0; i < drawn.logits.size(); ++i)
    ++(drawn.labels[i] > 0.5f ? counts.clicks : counts.misses)[of.Of(drawn.logits[i])];
  return counts;
}

TEST(ScoreHistogramTest, WithoutNoiseItsFiguresAreTheExactOnesToABin) {
  const Predictions drawn = Draw(20'000, 1);
  const double exact = ExactAuc(drawn.logits, drawn.labels);
  for (const uint32_t bins : {16u, 32u, 128u}) {
    const ReleasedScores::Counts counts = Count(drawn, bins);
    const ScoreFigures figures = counts.Figures();
    // At most the pairs within a bin are decided otherwise, each by a half.
    double tied = 0;
    for (size_t i = 0; i < bins; ++i) tied += counts.misses[i] * counts.clicks[i];
    const double pairs = drawn.clicks * (20'000 - drawn.clicks);
    EXPECT_NEAR(figures.auc, exact, tied / pairs / 2) << bins;
    // A prediction is at most half a bin from its middle, in log-odds, and so are its odds.
    const double factor = std::exp(ScoreBins(bins).width() / 2);
    EXPECT_LE(figures.calibration, factor * drawn.predicted / drawn.clicks) << bins;
    EXPECT_GE(figures.calibration, drawn.predicted / drawn.clicks / factor) << bins;
    EXPECT_EQ(figures.events, 20'000);
    EXPECT_EQ(figures.clicks, drawn.clicks);
    EXPECT_EQ(figures.auc_deviation, 0);
  }
  const ScoreFigures fine = Count(drawn, 1024).Figures();
  EXPECT_NEAR(fine.auc, exact, 1e-4);
  EXPECT_NEAR(fine.calibration, drawn.predicted / drawn.clicks, 1e-4);
}

TEST(ScoreHistogramTest, BinsHoldEveryPrediction) {
  const ScoreBins bins(32);
  EXPECT_EQ(bins.Of(NAN), 0u);
  EXPECT_EQ(bins.Of(-INFINITY), 0u);
  EXPECT_EQ(bins.Of(-8.f), 0u);
  EXPECT_EQ(bins.Of(0.f), 16u);
  EXPECT_EQ(bins.Of(-0.001f), 15u);
  EXPECT_EQ(bins.Of(7.99f), 31u);
  EXPECT_EQ(bins.Of(8.f), 31u);
  EXPECT_EQ(bins.Of(INFINITY), 31u);
  EXPECT_NEAR(bins.Probability(16), 1 / (1 + std::exp(-.25)), 1e-12);
}

// The spread of figures over fresh noise, against the deviation that is stated; `factor`: what the
// noise is of the noise that is told.
double SpreadOverStated(double factor, double ScoreFigures::*figure,
                        double ScoreFigures::*deviation) {
  constexpr double kSigma = 6;
  constexpr int kRuns = 2000;
  const ReleasedScores::Counts exact = Count(Draw(20'000, 2), 32);
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, factor * kSigma);
  double sum = 0, squares = 0, stated = 0;
  for (int run = 0; run < kRuns; ++run) {
    ReleasedScores::Counts counts = exact;
    counts.variance = kSigma * kSigma;
    for (auto* side : {&counts.misses, &counts.clicks})
      for (double& count : *side) count += noise(random);
    const ScoreFigures figures = counts.Figures();
    sum += figures.*figure;
    squares += figures.*figure * figures.*figure;
    stated += figures.*deviation;
  }
  const double mean = sum / kRuns;
  return std::sqrt(squares / kRuns - mean * mean) / (stated / kRuns);
}

TEST(ScoreHistogramTest, FiguresSpreadByTheDeviationThatTheyState) {
  // Five deviations of a deviation over 2,000 runs.
  constexpr double kSlack = 5 * 0.0158;
  EXPECT_NEAR(SpreadOverStated(1, &ScoreFigures::auc, &ScoreFigures::auc_deviation), 1, kSlack);
  EXPECT_NEAR(SpreadOverStated(1, &ScoreFigures::calibration, &ScoreFigures::calibration_deviation),
              1, kSlack);
  // Planted: a fifth more noise than is told.
  EXPECT_GT(SpreadOverStated(1.2, &ScoreFigures::auc, &ScoreFigures::auc_deviation), 1 + kSlack);
  EXPECT_GT(SpreadOverStated(1.2, &ScoreFigures::calibration, &ScoreFigures::calibration_deviation),
            1 + kSlack);
}

// The share of intervals that hold the AUC of very many records, over fresh records and fresh noise
// of this deviation; `told`: the deviation that the counts say they have.
double Covered(double sigma, double told) {
  constexpr int kRuns = 600;
  const double truth = Count(Draw(1'000'000, 8), 32).Figures().auc;
  std::mt19937_64 random(9);
  std::normal_distribution<double> noise;
  int covered = 0;
  for (int run = 0; run < kRuns; ++run) {
    ReleasedScores::Counts counts = Count(Draw(3000, 100 + static_cast<uint64_t>(run)), 32);
    counts.variance = told * told;
    for (auto* side : {&counts.misses, &counts.clicks})
      for (double& count : *side) count += sigma * noise(random);
    const Interval interval = counts.Figures().auc_interval;
    covered += interval.low <= truth && truth <= interval.high ? 1 : 0;
  }
  return static_cast<double>(covered) / kRuns;
}

TEST(ScoreHistogramTest, AnIntervalHoldsTheAucWithNoiseAndWithout) {
  // Four deviations of a share of 600 runs.
  constexpr double kSlack = 4 * .0089;
  EXPECT_NEAR(Covered(0, 0), .95, kSlack);
  EXPECT_NEAR(Covered(8, 8), .95, kSlack);
  EXPECT_LT(Covered(8, 0), .95 - kSlack) << "planted: an interval that forgets the noise";
}

TEST(ScoreHistogramTest, WhatNoiseHidesIsNotSaid) {
  ReleasedScores::Counts counts = Count(Draw(1000, 4), 32);
  counts.variance = 400 * 400;
  EXPECT_TRUE(std::isnan(counts.Figures().auc));
  EXPECT_TRUE(std::isnan(counts.Figures().calibration));
  EXPECT_TRUE(std::isnan(ReleasedScores::Counts().Figures().auc));
}

TEST(ScoreHistogramTest, BytesComeBackAndDamagedOnesAreRefused) {
  ReleasedScores scores;
  scores.step_begin = 8;
  scores.step_end = 12;
  scores.last = Count(Draw(100, 5), 4);
  scores.last.variance = 9;
  scores.all.Add(scores.last);
  scores.all.Add(Count(Draw(50, 6), 4));
  const std::string bytes = scores.Encode();
  const auto decoded = ReleasedScores::Decode(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->Encode(), bytes);
  EXPECT_EQ(decoded->all.windows, 2u);
  EXPECT_EQ(decoded->all.variance, 9);
  EXPECT_EQ(decoded->all.Figures().events, 150);
  for (size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(ReleasedScores::Decode(bytes.substr(0, cut))) << cut;
  EXPECT_FALSE(ReleasedScores::Decode(bytes + "x"));
  EXPECT_FALSE(ReleasedScores::Decode(std::string(bytes.size(), '\xff')));
  // Other bins begin anew.
  scores.all.Add(Count(Draw(10, 7), 8));
  EXPECT_EQ(scores.all.windows, 1u);
  EXPECT_EQ(scores.all.Figures().events, 10);
}

}  // namespace
}  // namespace tacit
