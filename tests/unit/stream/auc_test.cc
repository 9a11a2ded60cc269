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

// The example of Hanley and McNeil (1982), table II: 51 positives, 58 negatives, area .893,
// standard error .032. And by simulation: scores with exponential tails.
TEST(AucTest, ItsDeviationIsTheLiteraturesAndThatOfDraws) {
  EXPECT_NEAR(AucDeviation(0.893, 51, 58), 0.032, 0.001);
  EXPECT_TRUE(std::isnan(AucDeviation(0.5, 0, 10)));
  std::mt19937_64 random(11);
  std::exponential_distribution<float> tail(1);
  constexpr int kDraws = 2000, kEach = 100;
  double sum = 0, squares = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<float> score, label;
    for (int i = 0; i < 2 * kEach; ++i) {
      label.push_back(i % 2 == 0 ? 1.f : 0.f);
      score.push_back(tail(random) * (i % 2 == 0 ? 3.f : 1.f));
    }
    const double auc = ExactAuc(score, label);
    sum += auc / kDraws;
    squares += auc * auc / kDraws;
  }
  EXPECT_NEAR(sum, 0.75, 0.005) << "3 / (3 + 1)";
  EXPECT_NEAR(std::sqrt(squares - sum * sum) / AucDeviation(sum, kEach, kEach), 1, 0.1);
}

}  // namespace
}  // namespace tacit
