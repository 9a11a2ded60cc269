#include "model/ranking/ranker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tacit::model::ranking {
namespace {

// The loss in double, from the words of ranker.h.
double Loss(const std::vector<double>& w, const std::vector<float>& rows, size_t answer, double q) {
  const size_t count = rows.size() / kFeatures;
  std::vector<double> z(count);
  double all = 0;
  for (size_t i = 0; i < count; ++i) {
    for (size_t f = 0; f < kFeatures; ++f) z[i] += w[f] * rows[i * kFeatures + f];
    for (size_t k = 0; k < kHidden; ++k) {
      double h = w[kFeatures + kFeatures * kHidden + k];
      for (size_t f = 0; f < kFeatures; ++f)
        h += rows[i * kFeatures + f] * w[kFeatures + f * kHidden + k];
      z[i] += w[kFeatures + kFeatures * kHidden + kHidden + k] * std::max(0.0, h);
    }
    all += std::exp(z[i]);
  }
  return (1 - std::pow(std::exp(z[answer]) / all, q)) / q;
}

class RankerTest : public testing::Test {
 protected:
  RankerTest() {
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < 12 * kFeatures; ++i) rows_.push_back(normal(random_));
    for (float& w : parameters_) w += 0.3f * normal(random_);
  }

  std::mt19937_64 random_{3};
  std::vector<float> rows_, parameters_ = InitialRanker(1);
};

TEST_F(RankerTest, GradientsAreFiniteDifferences) {
  for (const double q : {0.01, 0.3, 1.0}) {
    RankerPass pass;
    std::vector<float> gradient(kRankerParameters);
    const double loss = pass.AddGradient(parameters_, rows_, 5, q, gradient);
    std::vector<double> w(parameters_.begin(), parameters_.end());
    EXPECT_NEAR(loss, Loss(w, rows_, 5, q), 1e-5);
    for (size_t i = 0; i < kRankerParameters; ++i) {
      const double at = w[i], step = 1e-6;
      w[i] = at + step;
      const double above = Loss(w, rows_, 5, q);
      w[i] = at - step;
      EXPECT_NEAR(gradient[i], (above - Loss(w, rows_, 5, q)) / (2 * step), 1e-4) << i;
      w[i] = at;
    }
    // Another question's is added to it.
    std::vector<float> both = gradient, other(kRankerParameters);
    pass.AddGradient(parameters_, rows_, 0, q, both);
    pass.AddGradient(parameters_, rows_, 0, q, other);
    for (size_t i = 0; i < both.size(); ++i) EXPECT_NEAR(both[i], gradient[i] + other[i], 1e-5);
  }
}

TEST_F(RankerTest, BeginsWithTheOrderOfTheCounts) {
  RankerPass pass;
  const auto z = pass.Score(InitialRanker(7), rows_);
  for (size_t i = 1; i < z.size(); ++i)
    EXPECT_EQ(z[i] > z[0], rows_[i * kFeatures + kScore] > rows_[kScore]);
  EXPECT_EQ(InitialRanker(7), InitialRanker(7));
  EXPECT_NE(InitialRanker(7), InitialRanker(8));
}

}  // namespace
}  // namespace tacit::model::ranking
