#include "lab/clicks/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/auc.h"

namespace tacit::lab {
namespace {

struct Sample {
  std::vector<float> label, a, b;
};

// Two correlated scores of the same events, with ties.
Sample Make(size_t n, uint64_t seed, double gain_a, double gain_b) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Sample sample;
  for (size_t i = 0; i < n; ++i) {
    const bool positive = random() % 4 == 0;
    const double shared = normal(random);
    const auto score = [&](double gain) {
      const double s = gain * positive + shared + 0.5 * normal(random);
      return static_cast<float>(std::round(16 * s) / 16);
    };
    sample.label.push_back(positive ? 1.0f : 0.0f);
    sample.a.push_back(score(gain_a));
    sample.b.push_back(score(gain_b));
  }
  return sample;
}

// DeLong, DeLong and Clarke-Pearson (1988): the variance of the difference of two correlated AUCs
// from each event's placement among those of the other class. Quadratic, as it is defined.
double DeLongDeviation(const Sample& s) {
  std::vector<size_t> positives, negatives;
  for (size_t i = 0; i < s.label.size(); ++i)
    (s.label[i] > 0.5f ? positives : negatives).push_back(i);
  const auto wins = [&](const std::vector<float>& score, size_t p, size_t n) {
    return score[p] > score[n] ? 1.0 : score[p] == score[n] ? 0.5 : 0.0;
  };
  const auto variance = [](const std::vector<double>& values) {
    double mean = 0, squares = 0;
    for (const double v : values) mean += v / static_cast<double>(values.size());
    for (const double v : values) squares += (v - mean) * (v - mean);
    return squares / static_cast<double>(values.size() - 1);
  };
  std::vector<double> by_positive, by_negative(negatives.size());
  for (const size_t p : positives) {
    double sum = 0;
    for (size_t j = 0; j < negatives.size(); ++j) {
      const double d = wins(s.a, p, negatives[j]) - wins(s.b, p, negatives[j]);
      sum += d;
      by_negative[j] += d / static_cast<double>(positives.size());
    }
    by_positive.push_back(sum / static_cast<double>(negatives.size()));
  }
  return std::sqrt(variance(by_positive) / static_cast<double>(positives.size()) +
                   variance(by_negative) / static_cast<double>(negatives.size()));
}

double Deviation(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double v : values) mean += v / static_cast<double>(values.size());
  for (const double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// 2,000 resamples know a deviation to 1.6 %; the limit is six times that. Unpaired resamples of
// scores so alike would be off by a factor.
TEST(PairedBootstrap, DeviationOfADifferenceIsDeLongs) {
  for (const uint64_t seed : {1, 2, 3}) {
    const Sample sample = Make(1500, seed, 1.0, 0.8);
    PairedBootstrap bootstrap(sample.label, 2000, 7);
    std::vector<double> difference = bootstrap.Aucs(sample.a);
    const std::vector<double> b = bootstrap.Aucs(sample.b);
    for (size_t r = 0; r < b.size(); ++r) difference[r] -= b[r];
    const double expected = DeLongDeviation(sample);
    EXPECT_NEAR(Deviation(difference) / expected, 1, 0.1);
    PairedBootstrap other(sample.label, 2000, 8);
    std::vector<double> unpaired = bootstrap.Aucs(sample.a);
    const std::vector<double> elsewhere = other.Aucs(sample.b);
    for (size_t r = 0; r < b.size(); ++r) unpaired[r] -= elsewhere[r];
    EXPECT_GT(Deviation(unpaired) / expected, 1.5);
    // The middle 95 % of a normal law is 3.92 deviations wide.
    const double observed = ExactAuc(sample.a, sample.label) - ExactAuc(sample.b, sample.label);
    const Resampled middle = MiddleOf(observed, difference);
    EXPECT_NEAR((middle.high - middle.low) / (3.92 * expected), 1, 0.12);
    EXPECT_LT(middle.low, observed);
    EXPECT_GT(middle.high, observed);
    EXPECT_EQ(middle.mean, observed);
  }
}

// Resamples are centred on the sample's own AUC, ties and all.
TEST(PairedBootstrap, IsCentredOnTheExactAuc) {
  const Sample sample = Make(4000, 5, 1.0, 0);
  PairedBootstrap bootstrap(sample.label, 1000, 1);
  double mean = 0;
  for (const double auc : bootstrap.Aucs(sample.a)) mean += auc / 1000;
  EXPECT_NEAR(mean, ExactAuc(sample.a, sample.label), 6 * 0.009 / std::sqrt(1000.0));
}

TEST(PairedBootstrap, TheSameSeedGivesTheSameResamples) {
  const Sample sample = Make(500, 3, 1.0, 0.5);
  PairedBootstrap one(sample.label, 50, 9), same(sample.label, 50, 9), other(sample.label, 50, 10);
  const auto first = one.Aucs(sample.a);
  EXPECT_EQ(first, one.Aucs(sample.a)) << "asking changes nothing";
  EXPECT_EQ(first, same.Aucs(sample.a));
  EXPECT_NE(first, other.Aucs(sample.a));
}

TEST(PairedBootstrap, OneClassAloneHasNoOrder) {
  const std::vector<float> label(10, 1.0f), score(10, 0.5f);
  PairedBootstrap bootstrap(label, 20, 1);
  for (const double auc : bootstrap.Aucs(score)) EXPECT_EQ(auc, 0.5);
}

}  // namespace
}  // namespace tacit::lab
