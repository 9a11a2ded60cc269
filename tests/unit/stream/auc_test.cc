#include "base/auc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tacit {
namespace {

// Every pair, by the definition.
double PairwiseAuc(const std::vector<float>& score, const std::vector<float>& label) {
  double wins = 0, pairs = 0;
  for (size_t i = 0; i < score.size(); ++i)
    for (size_t j = 0; j < score.size(); ++j) {
      if (label[i] < 0.5f || label[j] > 0.5f) continue;
      ++pairs;
      wins += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
    }
  return wins / pairs;
}

TEST(AucTest, ExactAucIsTheShareOfPairsInOrder) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> score, label;
    for (int i = 0; i < 60; ++i) {
      score.push_back(static_cast<float>(random() % 12));  // many ties
      label.push_back(i == 0 ? 1 : i == 1 ? 0 : static_cast<float>(random() % 2));
    }
    ASSERT_NEAR(ExactAuc(score, label), PairwiseAuc(score, label), 1e-12);
  }
}

TEST(AucTest, NanIsTheLowestScore) {
  std::vector<float> score, label;
  for (int i = 0; i < 300; ++i) {
    score.push_back(i % 3 == 0 ? NAN : static_cast<float>(i % 7));
    label.push_back(i % 3 == 0 ? 0.0f : 1.0f);
  }
  EXPECT_EQ(ExactAuc(score, label), 1.0);
}

// Two normals one standard deviation apart: AUC = Phi(1 / sqrt(2)) = 0.76025.
TEST(AucTest, TheHistogramIsWithinAThousandth) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  AucHistogram first, second;
  std::vector<float> score, label;
  for (int i = 0; i < 200000; ++i) {
    const bool positive = i % 5 == 0;
    score.push_back(normal(random) - 3 + (positive ? 1.0f : 0.0f));
    label.push_back(positive ? 1.0f : 0.0f);
    (i % 3 == 0 ? first : second).Add(score.back(), positive);
  }
  first.Merge(second);
  EXPECT_NEAR(first.Auc(), ExactAuc(score, label), 1e-3);
  EXPECT_NEAR(first.Auc(), 0.76025, 5e-3);
}

TEST(AucTest, OneClassAloneSaysNothing) {
  AucHistogram histogram;
  EXPECT_EQ(histogram.Auc(), 0.5);
  histogram.Add(1, true);
  EXPECT_EQ(histogram.Auc(), 0.5);
  const float score = 1, label = 0;
  EXPECT_EQ(ExactAuc({&score, 1}, {&label, 1}), 0.5);
}

TEST(AucTest, ExtremeLogitsFallIntoTheOuterBins) {
  AucHistogram histogram;
  histogram.Add(1e30f, true);
  histogram.Add(INFINITY, true);
  histogram.Add(-1e30f, false);
  histogram.Add(NAN, false);
  EXPECT_EQ(histogram.Auc(), 1.0);
}

struct Scored {
  std::vector<float> score, label;
};

// Clicks are spread far more widely than the rest, and many scores are tied.
Scored DrawWide(std::mt19937_64& random, size_t clicks, size_t misses) {
  std::normal_distribution<double> normal;
  Scored drawn;
  for (size_t i = 0; i < clicks + misses; ++i) {
    const bool click = i < clicks;
    const double score = click ? 1 + 3 * normal(random) : .7 * normal(random);
    drawn.score.push_back(static_cast<float>(std::round(4 * score) / 4));
    drawn.label.push_back(click ? 1 : 0);
  }
  return drawn;
}

AucEstimate EstimateOf(const Scored& scored) {
  AucHistogram histogram;
  for (size_t i = 0; i < scored.score.size(); ++i)
    histogram.Add(scored.score[i], scored.label[i] > .5f);
  return histogram.Estimate();
}

double DeviationOf(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / n - sum / n * (sum / n));
}

// The deviation by Hanley and McNeil (1982), whose scores have exponential tails.
double ExponentialTails(double auc, double positives, double negatives) {
  const double square = auc * auc;
  return std::sqrt((auc * (1 - auc) + (positives - 1) * (auc / (2 - auc) - square) +
                    (negatives - 1) * (2 * square / (1 + auc) - square)) /
                   (positives * negatives));
}

// The oracles are the spread over fresh draws, and a bootstrap of one of them.
TEST(AucTest, ItsDeviationIsThatOfDrawsAndOfABootstrap) {
  constexpr size_t kClicks = 60, kMisses = 400;
  constexpr int kDraws = 1500;
  constexpr double kSlack = .12;
  std::mt19937_64 random(11);
  std::vector<double> drawn, bootstrap;
  double stated = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const AucEstimate estimate = EstimateOf(DrawWide(random, kClicks, kMisses));
    drawn.push_back(estimate.auc);
    stated += estimate.deviation / kDraws;
  }
  EXPECT_NEAR(DeviationOf(drawn) / stated, 1, kSlack);
  EXPECT_GT(DeviationOf(drawn) / ExponentialTails(.627, kClicks, kMisses), 1 + 2 * kSlack)
      << "planted: a law that these scores do not have";

  const Scored one = DrawWide(random, kClicks, kMisses);
  for (int draw = 0; draw < kDraws; ++draw) {
    Scored again;
    for (size_t i = 0; i < one.score.size(); ++i) {
      const size_t from = random() % one.score.size();
      again.score.push_back(one.score[from]);
      again.label.push_back(one.label[from]);
    }
    bootstrap.push_back(ExactAuc(again.score, again.label));
  }
  EXPECT_NEAR(DeviationOf(bootstrap) / EstimateOf(one).deviation, 1, kSlack);
}

// With one record of a label nothing is known of the spread of that label's scores.
TEST(AucTest, OneRecordOfALabelHasNoDeviation) {
  AucHistogram histogram;
  histogram.Add(1, true);
  histogram.Add(0, false);
  histogram.Add(2, false);
  EXPECT_EQ(histogram.Auc(), .5);
  EXPECT_TRUE(std::isnan(histogram.Estimate().deviation));
  histogram.Add(3, true);
  // Placements 1/2 and 1 of the clicks, 1 and 1/2 of the rest, around 3/4: variance 1/16 of each.
  EXPECT_DOUBLE_EQ(histogram.Estimate().deviation, std::sqrt(.125));
}

}  // namespace
}  // namespace tacit
