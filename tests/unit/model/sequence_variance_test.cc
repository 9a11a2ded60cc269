// The laws by which noise in parameters spreads, layer by layer, each against sampling.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "model/sequence/attention.h"
#include "model/sequence/variance.h"

namespace tacit::model {
namespace {

// The variance of what `draw` gives, number by number.
template <class Draw>
std::vector<double> SampledVariance(size_t numbers, int samples, const Draw& draw) {
  std::vector<double> sum(numbers), square(numbers), x(numbers);
  for (int s = 0; s < samples; ++s) {
    draw(&x);
    for (size_t i = 0; i < numbers; ++i) {
      sum[i] += x[i];
      square[i] += x[i] * x[i];
    }
  }
  for (size_t i = 0; i < numbers; ++i)
    square[i] = (square[i] - sum[i] * sum[i] / samples) / (samples - 1);
  return square;
}

class VarianceTest : public ::testing::Test {
 protected:
  double Normal(double mean, double variance) {
    return mean + std::sqrt(variance) * normal_(random_);
  }
  std::vector<float> Vector(size_t n, float spread) {
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(spread * normal_(random_));
    return x;
  }
  std::vector<float> Variances(size_t n, float most) {
    std::vector<float> v(n);
    for (float& x : v) x = most * std::uniform_real_distribution<float>(0.2f, 1)(random_);
    return v;
  }

  std::mt19937_64 random_{7};
  std::normal_distribution<double> normal_;
  std::unique_ptr<ops::UnitOps> ops_ = ops::MakeCpuUnitOps(ops::Precision::kF32);
};

// Both factors are uncertain, and so is the bias; without any of the terms the law is off by more
// than this test allows.
TEST_F(VarianceTest, OfALinearLayer) {
  constexpr size_t kIn = 3, kOut = 3;
  constexpr double kWeightVariance = 0.6, kBiasVariance = 0.4;
  constexpr LayerNoise kNoise{kWeightVariance, kBiasVariance};
  auto mean = Vector(kIn, 0.7f), variance = Variances(kIn, 1), weights = Vector(kIn * kOut, 0.8f);
  auto squares = weights;
  for (float& w : squares) w *= w;
  std::vector<float> out(kOut);
  ASSERT_TRUE(
      LinearVariance(*ops_, ops::Matrix(mean.data(), 1, kIn), ops::Matrix(variance.data(), 1, kIn),
                     ops::Matrix(squares.data(), kIn, kOut), 0, kNoise, {out.data(), 1, kOut}));
  const auto sampled = SampledVariance(kOut, 200'000, [&](std::vector<double>* y) {
    std::vector<double> x(kIn);
    for (size_t k = 0; k < kIn; ++k) x[k] = Normal(mean[k], variance[k]);
    for (size_t j = 0; j < kOut; ++j) {
      (*y)[j] = Normal(0, kBiasVariance);
      for (size_t k = 0; k < kIn; ++k)
        (*y)[j] += x[k] * Normal(weights[k * kOut + j], kWeightVariance);
    }
  });
  for (size_t j = 0; j < kOut; ++j) {
    EXPECT_NEAR(out[j] / sampled[j], 1, 0.03);
    double v = 0, m = 0, both = 0;
    for (size_t k = 0; k < kIn; ++k) {
      both += variance[k] * kWeightVariance;
      v += variance[k] * squares[k * kOut + j];
      m += kWeightVariance * mean[k] * mean[k];
    }
    for (const double term : {both, v, m, kBiasVariance})
      EXPECT_GT(term / sampled[j], 0.03) << "a term that would not be missed";
  }
  // Some columns alone are the same columns.
  std::vector<float> last(2);
  ASSERT_TRUE(
      LinearVariance(*ops_, ops::Matrix(mean.data(), 1, kIn), ops::Matrix(variance.data(), 1, kIn),
                     ops::Matrix(squares.data(), kIn, kOut), 1, kNoise, {last.data(), 1, 2}));
  EXPECT_NEAR(last[0], out[1], 1e-5);
  EXPECT_NEAR(last[1], out[2], 1e-5);
}

// Paper 000, table 3: its second parameters are standard deviations.
TEST_F(VarianceTest, OfAReluIsThatOfThePapersTable) {
  const double deviation[] = {0.01, 0.1, 1}, printed[] = {3.40e-5, 0.0034, 0.3408},
               digits[] = {0.005e-5 + 1e-7, 0.00005, 0.00005};
  for (int i = 0; i < 3; ++i) {
    const float mean = 0;
    auto variance = static_cast<float>(deviation[i] * deviation[i]);
    float m = mean;
    ops_->ReluVariance({&m, 1, 1}, {&variance, 1, 1});
    EXPECT_NEAR(variance, printed[i], digits[i]);
    // Eq. 5.6 as printed takes off the square of the input's mean, here 0.
    EXPECT_GT(std::abs(0.5 * deviation[i] * deviation[i] - printed[i]), 10 * digits[i]);
  }
}

TEST_F(VarianceTest, OfAReluAtAnyMean) {
  for (const double mean : {-1.5, -0.3, 0.0, 0.4, 2.5}) {
    constexpr double kVariance = 0.8;
    auto m = static_cast<float>(mean), v = static_cast<float>(kVariance);
    ops_->ReluVariance({&m, 1, 1}, {&v, 1, 1});
    const auto sampled = SampledVariance(1, 300'000, [&](std::vector<double>* y) {
      (*y)[0] = std::max(0.0, Normal(mean, kVariance));
    });
    EXPECT_NEAR(v / sampled[0], 1, 0.04) << mean;
  }
}

// The row is as long as its numbers and their noise together: without mean(v) it would be too much.
TEST_F(VarianceTest, OfANormalisedRow) {
  constexpr size_t kWidth = 64;
  const auto mean = Vector(kWidth, 1);
  const auto gain = Variances(kWidth, 2);
  for (const double noise : {0.01, 0.5}) {
    double centre = 0, spread = 0;
    for (const float m : mean) centre += m / double{kWidth};
    for (const float m : mean) spread += (m - centre) * (m - centre) / kWidth;
    const std::vector<float> inverse = {static_cast<float>(1 / std::sqrt(spread + 1e-5))};
    std::vector<float> v(kWidth, static_cast<float>(noise));
    LayerNormVariance(inverse, gain, {v.data(), 1, kWidth});
    const auto sampled = SampledVariance(kWidth, 20'000, [&](std::vector<double>* y) {
      double m = 0, s = 0;
      for (size_t c = 0; c < kWidth; ++c) m += ((*y)[c] = Normal(mean[c], noise)) / kWidth;
      for (const double x : *y) s += (x - m) * (x - m) / kWidth;
      for (size_t c = 0; c < kWidth; ++c) (*y)[c] = gain[c] * ((*y)[c] - m) / std::sqrt(s + 1e-5);
    });
    double told = 0, seen = 0;
    for (size_t c = 0; c < kWidth; ++c) {
      told += v[c];
      seen += sampled[c];
      EXPECT_NEAR(v[c] / sampled[c], 1, 0.2) << c;
    }
    // Mean and length of a row are its own numbers': about three of 64 are given away.
    EXPECT_NEAR(told / seen, 1, 0.06);
    if (noise == 0.5) {
      EXPECT_GT(told * (spread + noise) / spread / seen, 1.2);
    }
  }
}

// Queries and keys as they are, values uncertain: two crops, two heads.
TEST_F(VarianceTest, OfAttention) {
  constexpr size_t kRows = 5, kWidth = 4;
  const std::vector<uint32_t> crop_end = {3, 5};
  const auto qkv = Vector(kRows * 3 * kWidth, 1);
  auto variance = Variances(kRows * kWidth, 1);
  CausalAttention attention(kWidth, 2, *ops_);
  std::vector<float> out(kRows * kWidth), told(kRows * kWidth);
  auto drawn = qkv;
  const auto sampled = SampledVariance(out.size(), 60'000, [&](std::vector<double>* y) {
    for (size_t r = 0; r < kRows; ++r)
      for (size_t c = 0; c < kWidth; ++c) {
        const size_t at = r * 3 * kWidth + 2 * kWidth + c;
        drawn[at] = static_cast<float>(Normal(qkv[at], variance[r * kWidth + c]));
      }
    EXPECT_TRUE(attention.Forward(crop_end, ops::Matrix(drawn.data(), kRows, 3 * kWidth), {}, {},
                                  {out.data(), kRows, kWidth}));
    y->assign(out.begin(), out.end());
  });
  ASSERT_TRUE(attention.Variance(crop_end, ops::Matrix(variance.data(), kRows, kWidth),
                                 {told.data(), kRows, kWidth}));
  for (size_t i = 0; i < told.size(); ++i) EXPECT_NEAR(told[i] / sampled[i], 1, 0.04) << i;
}

// The amount taken off a logit is what uncertain keys add to its exponential on average: the
// corrected shares come from logits whose exponentials are right in the mean. Without the division
// by the head's width, or by two, they would not be.
TEST_F(VarianceTest, TheCorrectionIsWhatUncertainKeysAdd) {
  constexpr size_t kWidth = 8;
  constexpr float kKappa = 1;
  std::vector<float> qkv = Vector(2 * 3 * kWidth, 1);
  std::vector<float> variance(2 * kWidth, 0.0f);
  const auto uncertain = Variances(kWidth, 1);
  std::copy(uncertain.begin(), uncertain.end(), variance.begin() + kWidth);
  const std::vector<uint32_t> crop_end = {2};
  // Values 0 and 1 show the share of the second key.
  for (size_t c = 0; c < kWidth; ++c) {
    qkv[2 * kWidth + c] = 0;
    qkv[3 * kWidth + 2 * kWidth + c] = 1;
  }
  CausalAttention attention(kWidth, 1, *ops_);
  std::vector<float> out(2 * kWidth);
  const auto odds = [&](float kappa) {
    EXPECT_TRUE(attention.Forward(
        crop_end, ops::Matrix(qkv.data(), 2, 3 * kWidth), {.kappa = kappa, .most = 100},
        ops::Matrix(variance.data(), 2, kWidth), {out.data(), 2, kWidth}));
    return double{out[kWidth]} / (1 - double{out[kWidth]});
  };
  const double correction = odds(0) / odds(kKappa);
  double mean = 0;
  constexpr int kSamples = 400'000;
  for (int s = 0; s < kSamples; ++s) {
    double shift = 0;
    for (size_t c = 0; c < kWidth; ++c)
      shift += qkv[3 * kWidth + c] * Normal(0, uncertain[c]) / std::sqrt(double{kWidth});
    mean += std::exp(shift) / kSamples;
  }
  EXPECT_NEAR(correction / mean, 1, 0.02);
  EXPECT_GT(correction, 1.1) << "too little noise for this test to fail";
  EXPECT_GT(std::abs(std::pow(correction, 2) / mean - 1), 0.05);
  EXPECT_GT(std::abs(std::pow(correction, kWidth) / mean - 1), 0.05);
  // No more is taken off than allowed: a quarter, of a logit whose key is uncertain alone.
  EXPECT_TRUE(attention.Forward(crop_end, ops::Matrix(qkv.data(), 2, 3 * kWidth),
                                {.kappa = 1e6f, .most = 0.25f},
                                ops::Matrix(variance.data(), 2, kWidth), {out.data(), 2, kWidth}));
  const double limited = double{out[kWidth]} / (1 - double{out[kWidth]});
  EXPECT_NEAR(odds(0) / limited, std::exp(0.25), 1e-4);
}

}  // namespace
}  // namespace tacit::model
