#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tacit::train {
namespace {

std::vector<float> RandomVector(size_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// Adam as published (Kingma and Ba 2015, algorithm 1), in float64.
struct Adam64 {
  double rate, beta1, beta2, epsilon;
  std::vector<double> m, v;
  int t = 0;

  void Step(const std::vector<float>& g, std::vector<double>* x) {
    ++t;
    m.resize(g.size());
    v.resize(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * double{g[i]} * g[i];
      const double m_hat = m[i] / (1 - std::pow(beta1, t));
      const double v_hat = v[i] / (1 - std::pow(beta2, t));
      (*x)[i] -= rate * m_hat / (std::sqrt(v_hat) + epsilon);
    }
  }
};

TEST(OptimizerTest, DenseAdamFollowsThePublishedAlgorithm) {
  std::mt19937 random(1);
  constexpr size_t kN = 5000;
  const Optimizer optimizer({.learning_rate = 0.01f});
  WorkerPool workers({.workers = 2});
  std::vector<float> x = RandomVector(kN, random), state(optimizer.StateFloats(kN));
  std::vector<double> x64(x.begin(), x.end());
  Adam64 oracle{0.01, double{0.9f}, double{0.999f}, double{1e-8f}, {}, {}};
  for (int step = 0; step < 50; ++step) {
    const std::vector<float> g = RandomVector(kN, random);
    optimizer.StepDense(g, x, state, workers);
    oracle.Step(g, &x64);
  }
  for (size_t i = 0; i < kN; ++i) ASSERT_NEAR(x[i], x64[i], 2e-5) << i;
}

TEST(OptimizerTest, ARowIsCorrectedForItsOwnStepsNotTheStreams) {
  std::mt19937 random(2);
  constexpr size_t kDim = 24;
  const Optimizer optimizer({.row_learning_rate = 0.05f});
  std::vector<float> row = RandomVector(kDim, random);
  std::vector<double> x64(row.begin(), row.end());
  row.resize(kDim + optimizer.StateFloats(kDim));
  Adam64 oracle{double{0.05f}, double{0.9f}, double{0.999f}, double{1e-8f}, {}, {}};
  for (int step = 0; step < 5; ++step) {
    const std::vector<float> g = RandomVector(kDim, random);
    optimizer.StepRow(g, row);
    oracle.Step(g, &x64);
  }
  for (size_t i = 0; i < kDim; ++i) ASSERT_NEAR(row[i], x64[i], 1e-5) << i;
}

TEST(OptimizerTest, TheNumberOfWorkersDoesNotChangeABit) {
  std::mt19937 random(3);
  constexpr size_t kN = 10007;
  const Optimizer optimizer({});
  WorkerPool one({.workers = 1}), three({.workers = 3});
  std::vector<float> a = RandomVector(kN, random), b = a;
  std::vector<float> state_a(optimizer.StateFloats(kN)), state_b = state_a;
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> g = RandomVector(kN, random);
    optimizer.StepDense(g, a, state_a, one);
    optimizer.StepDense(g, b, state_b, three);
  }
  EXPECT_EQ(a, b);
  EXPECT_EQ(state_a, state_b);
}

TEST(OptimizerTest, SgdSubtractsTheRateTimesTheGradient) {
  const Optimizer optimizer(
      {.kind = OptimizerOptions::Kind::kSgd, .learning_rate = 0.5f, .row_learning_rate = 0.25f});
  EXPECT_EQ(optimizer.StateFloats(7), 0u);
  WorkerPool workers({.workers = 1});
  std::vector<float> x{1, 2}, state, row{1, 2};
  optimizer.StepDense(std::vector<float>{2, -4}, x, state, workers);
  EXPECT_EQ(x, (std::vector<float>{0, 4}));
  optimizer.StepRow(std::vector<float>{2, -4}, row);
  EXPECT_EQ(row, (std::vector<float>{0.5, 3}));
}

}  // namespace
}  // namespace tacit::train
