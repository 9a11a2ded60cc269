#include "train/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace tacit::train {
namespace {

using Moments = OptimizerOptions::Moments;

std::vector<float> RandomVector(size_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

void StepRow(const Optimizer& optimizer, const std::vector<float>& g, std::span<float> row) {
  const RowUpdate update{g, row};
  optimizer.StepRows({&update, 1});
}

// Every optimiser in float64, one number at a time and one step after the other, straight from the
// definitions; lazy ones are asked at every step and are not lazy here.
class Loop {
 public:
  Loop(const OptimizerOptions& options, std::vector<float> weights, bool is_row)
      : options_(options),
        is_row_(is_row),
        w_(weights.begin(), weights.end()),
        m_(w_.size()),
        v_(w_.size()) {}

  // A step in which these weights get a gradient.
  void Step(const std::vector<float>& g, double noise_stddev) { Pass(&g, noise_stddev); }
  // A step in which a row gets none.
  void Rest() { Pass(nullptr, 0); }

  double weight(size_t i) const { return w_[i]; }
  double average(size_t i) const { return sum_[i] / weight_sum_; }
  double m(size_t i) const { return m_[i]; }
  double v(size_t i) const { return v_[i]; }

 private:
  bool named(std::string_view name) const { return options_.kind->name == name; }
  bool lazy() const { return is_row_ && options_.moments == Moments::kLazy; }

  void Pass(const std::vector<float>* g, double noise_stddev) {
    ++step_;
    if (g != nullptr) ++writes_;
    if (named("adam") || named("adam-bc")) Adam(g, noise_stddev);
    if (named("adagrad") && g != nullptr) Adagrad(*g);
    if (named("sgd") && g != nullptr) Sgd(*g);
    // sum over steps of decay^(now - step) w(step), over the sum of the weights.
    sum_.resize(w_.size());
    for (size_t i = 0; i < w_.size(); ++i) sum_[i] = options_.average_decay * sum_[i] + w_[i];
    weight_sum_ = options_.average_decay * weight_sum_ + 1;
  }

  double rate() const { return is_row_ ? options_.row_learning_rate : options_.learning_rate; }

  void Adam(const std::vector<float>* g, double noise_stddev) {
    if (g == nullptr && !lazy()) return;
    const double beta1 = options_.beta1, beta2 = options_.beta2;
    const double t = is_row_ && !lazy() ? writes_ : step_;
    p_ = beta2 * p_ + (1 - beta2) * noise_stddev * noise_stddev;
    for (size_t i = 0; i < w_.size(); ++i) {
      const double x = g == nullptr ? 0 : (*g)[i];
      m_[i] = beta1 * m_[i] + (1 - beta1) * x;
      v_[i] = beta2 * v_[i] + (1 - beta2) * x * x;
      if (g == nullptr) continue;
      const double m_hat = m_[i] / (1 - std::pow(beta1, t));
      const double v_hat = v_[i] / (1 - std::pow(beta2, t));
      const double p_hat = p_ / (1 - std::pow(beta2, t));
      w_[i] -=
          named("adam-bc") && !is_row_
              ? rate() * m_hat / std::sqrt(std::max<double>(v_hat - p_hat, options_.variance_floor))
              : rate() * m_hat / (std::sqrt(v_hat) + options_.epsilon);
    }
  }

  void Adagrad(const std::vector<float>& g) {
    double mean = 0;
    for (double x : g) mean += x * x / static_cast<double>(g.size());
    for (size_t i = 0; i < w_.size(); ++i) {
      v_[i] += is_row_ ? mean : double{g[i]} * g[i];
      w_[i] -= rate() * g[i] / (std::sqrt(v_[i]) + options_.epsilon);
    }
  }

  void Sgd(const std::vector<float>& g) {
    for (size_t i = 0; i < w_.size(); ++i) {
      m_[i] = (is_row_ ? 0 : double{options_.momentum}) * m_[i] + g[i];
      w_[i] -= rate() * m_[i];
    }
  }

  const OptimizerOptions options_;
  const bool is_row_;
  std::vector<double> w_, m_, v_, sum_;
  double weight_sum_ = 0, p_ = 0;
  int step_ = 0, writes_ = 0;
};

struct Case {
  std::string name;
  OptimizerOptions options;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class EveryOptimizer : public testing::TestWithParam<Case> {};

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"sgd", {.kind = OptimizerNamed("sgd"), .learning_rate = 0.1f, .row_learning_rate = 0.2f}},
      {"momentum",
       {.kind = OptimizerNamed("sgd"),
        .learning_rate = 0.01f,
        .row_learning_rate = 0.2f,
        .momentum = 0.9f}},
      {"adagrad",
       {.kind = OptimizerNamed("adagrad"), .learning_rate = 0.1f, .row_learning_rate = 0.2f}},
      {"adam", {.learning_rate = 0.01f, .row_learning_rate = 0.05f}},
      {"adam_lazy",
       {.learning_rate = 0.01f,
        .row_learning_rate = 0.05f,
        .beta2 = 0.99f,
        .moments = Moments::kLazy}},
      {"adam_bc",
       {.kind = OptimizerNamed("adam-bc"),
        .learning_rate = 0.01f,
        .row_learning_rate = 0.05f,
        .beta2 = 0.9f,
        .variance_floor = 0.25f}}};
  for (size_t i = 0, plain = cases.size(); i < plain; ++i) {
    cases.push_back(cases[i]);
    cases.back().name += "_averaged";
    cases.back().options.average_decay = 0.97;
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Train, EveryOptimizer, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// Noise that changes, as it does where the clip adapts.
double NoiseAt(int step) { return 0.5 + 0.4 * std::sin(step); }

TEST_P(EveryOptimizer, DenseFollowsTheLoop) {
  std::mt19937 random(1);
  constexpr size_t kN = 3000;
  const OptimizerOptions& options = GetParam().options;
  Optimizer optimizer(options);
  WorkerPool workers({.workers = 2});
  std::vector<float> x = RandomVector(kN, random), state(optimizer.DenseStateFloats(kN));
  Loop loop(options, x, false);
  for (int step = 0; step < 60; ++step) {
    const std::vector<float> g = RandomVector(kN, random);
    // A restart in between: all there is to know lies in the state.
    if (step == 30) {
      Optimizer resumed(options);
      resumed.StepDense(g, NoiseAt(step), x, state, workers);
    } else {
      optimizer.StepDense(g, NoiseAt(step), x, state, workers);
    }
    loop.Step(g, NoiseAt(step));
  }
  const MovingAverage average(options.average_decay);
  std::vector<float> served(kN);
  average.Read(x, state, 60, served);
  for (size_t i = 0; i < kN; ++i) {
    ASSERT_NEAR(x[i], loop.weight(i), 5e-5) << i;
    ASSERT_NEAR(served[i], average.on() ? loop.average(i) : loop.weight(i), 5e-5) << i;
  }
}

// Rows that are written at random steps, each as often as chance has it; some never.
TEST_P(EveryOptimizer, RowsWrittenNowAndThenFollowTheLoopThatGoesThroughEveryStep) {
  std::mt19937 random(2);
  constexpr size_t kRows = 30, kDim = 19, kSteps = 400;
  const OptimizerOptions& options = GetParam().options;
  Optimizer optimizer(options);
  WorkerPool workers({.workers = 1});
  std::vector<float> dense = {1}, dense_state(optimizer.DenseStateFloats(1));
  std::vector<std::vector<float>> rows;
  std::vector<Loop> loops;
  for (size_t r = 0; r < kRows; ++r) {
    rows.push_back(RandomVector(kDim, random));
    loops.emplace_back(options, rows.back(), true);
    rows.back().resize(kDim + optimizer.RowStateFloats(kDim));
  }
  const MovingAverage average(options.average_decay);
  std::vector<float> served(kDim);
  for (uint32_t step = 1; step <= kSteps; ++step) {
    optimizer.StepDense(std::vector<float>{0.5f}, 1, dense, dense_state, workers);
    for (size_t r = 0; r < kRows; ++r) {
      // Row 0 is never written, the last at every step.
      if (random() % (kRows - 1) >= r) {
        loops[r].Rest();
      } else {
        const std::vector<float> g = RandomVector(kDim, random);
        StepRow(optimizer, g, rows[r]);
        loops[r].Step(g, 0);
      }
      const auto row = std::span(rows[r]);
      average.Read(row.first(kDim), row.subspan(kDim), step, served);
      for (size_t i = 0; i < kDim; ++i) {
        ASSERT_NEAR(row[i], loops[r].weight(i), 1e-4) << "row " << r << " step " << step;
        ASSERT_NEAR(served[i], average.on() ? loops[r].average(i) : loops[r].weight(i), 1e-4)
            << "row " << r << " step " << step;
      }
    }
  }
}

TEST_P(EveryOptimizer, TheNumberOfWorkersDoesNotChangeABit) {
  std::mt19937 random(3);
  constexpr size_t kN = 10007;
  Optimizer first(GetParam().options), second(GetParam().options);
  WorkerPool one({.workers = 1}), three({.workers = 3});
  std::vector<float> a = RandomVector(kN, random), b = a;
  std::vector<float> state_a(first.DenseStateFloats(kN)), state_b = state_a;
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> g = RandomVector(kN, random);
    first.StepDense(g, 0.1, a, state_a, one);
    second.StepDense(g, 0.1, b, state_b, three);
  }
  EXPECT_EQ(a, b);
  for (size_t i = 0; i < state_a.size(); ++i) ASSERT_EQ(CountOf(state_a[i]), CountOf(state_b[i]));
}

TEST_P(EveryOptimizer, KeepsNoMoreThanItNeeds) {
  const std::map<std::string, std::pair<size_t, size_t>> expected = {
      {"sgd", {0, 0}},
      {"momentum", {7, 0}},
      {"adagrad", {7, 1}},
      {"adam", {15, 15}},
      {"adam_lazy", {15, 15}},
      {"adam_bc", {16, 15}},
      {"sgd_averaged", {8, 8}},
      {"momentum_averaged", {15, 8}},
      {"adagrad_averaged", {15, 9}},
      {"adam_averaged", {22, 23}},
      {"adam_lazy_averaged", {22, 22}},
      {"adam_bc_averaged", {23, 23}}};
  const Optimizer optimizer(GetParam().options);
  EXPECT_EQ(optimizer.DenseStateFloats(7), expected.at(GetParam().name).first);
  EXPECT_EQ(optimizer.RowStateFloats(7), expected.at(GetParam().name).second);
}

// Lazy decay is not an approximation: the moments are those of Adam on the whole table, where a row
// without an update has a zero gradient.
TEST(Optimizer, LazyMomentsAreThoseOfAdamOnTheWholeTable) {
  std::mt19937 random(4);
  constexpr size_t kDim = 8;
  const OptimizerOptions options = {.beta2 = 0.99f, .moments = Moments::kLazy};
  Optimizer optimizer(options);
  WorkerPool workers({.workers = 1});
  std::vector<float> dense = {1}, dense_state(optimizer.DenseStateFloats(1));
  std::vector<float> row(kDim + optimizer.RowStateFloats(kDim));
  std::vector<double> m(kDim), v(kDim);
  for (int step = 1; step <= 2000; ++step) {
    optimizer.StepDense(std::vector<float>{1}, 0, dense, dense_state, workers);
    const bool written = random() % 50 == 0;
    const std::vector<float> g = written ? RandomVector(kDim, random) : std::vector<float>(kDim);
    for (size_t i = 0; i < kDim; ++i) {
      m[i] = double{0.9f} * m[i] + (1 - double{0.9f}) * g[i];
      v[i] = double{0.99f} * v[i] + (1 - double{0.99f}) * g[i] * g[i];
    }
    if (!written) continue;
    StepRow(optimizer, g, row);
    for (size_t i = 0; i < kDim; ++i) {
      ASSERT_NEAR(row[kDim + i], m[i], 1e-6 * (1 + std::abs(m[i]))) << step;
      ASSERT_NEAR(row[2 * kDim + i], v[i], 1e-5 * v[i]) << step;
    }
  }
}

// The point of the correction: where the gradient is noise alone, v is all noise, and what is left
// is the floor; without it steps would shrink with the noise.
TEST(Optimizer, SubtractsTheNoisesShareOfTheSecondMoment) {
  std::mt19937 random(5);
  constexpr size_t kN = 2000;
  constexpr float kSignal = 0.5f, kNoise = 3;
  const OptimizerOptions options = {.kind = OptimizerNamed("adam-bc"), .learning_rate = 0.01f};
  Optimizer optimizer(options);
  WorkerPool workers({.workers = 1});
  std::vector<float> x(kN), state(optimizer.DenseStateFloats(kN));
  for (int step = 0; step < 3000; ++step) {
    std::vector<float> g = RandomVector(kN, random);
    for (float& value : g) value = kNoise * value + kSignal;
    optimizer.StepDense(g, kNoise, x, state, workers);
  }
  // v - p, on average over the numbers, is the square of the signal.
  const double correction = 1 - std::pow(double{options.beta2}, 3000);
  double mean = 0;
  for (size_t i = 0; i < kN; ++i) mean += (double{state[kN + i]} - state[2 * kN]) / correction / kN;
  EXPECT_NEAR(mean, kSignal * kSignal, 0.05);
}

TEST(Optimizer, CountsBeyondWhatAFloatCanCount) {
  WorkerPool workers({.workers = 1});
  Optimizer optimizer({.moments = Moments::kLazy, .average_decay = 0.5});
  std::vector<float> x = {1}, state(optimizer.DenseStateFloats(1));
  state.back() = CountAsFloat((1u << 24) + 1);
  for (int step = 0; step < 2; ++step)
    optimizer.StepDense(std::vector<float>{1}, 0, x, state, workers);
  EXPECT_EQ(CountOf(state.back()), (1u << 24) + 3);
  std::vector<float> row(1 + optimizer.RowStateFloats(1));
  StepRow(optimizer, std::vector<float>{1}, row);
  EXPECT_EQ(CountOf(row.back()), (1u << 24) + 3);
  Optimizer own({});
  row.assign(1 + own.RowStateFloats(1), 0);
  row.back() = CountAsFloat((1u << 24) + 1);
  StepRow(own, std::vector<float>{1}, row);
  EXPECT_EQ(CountOf(row.back()), (1u << 24) + 2);
}

// The texts are those of stores that exist: as another text, their learners would be refused.
TEST(Optimizer, FingerprintsAreThoseOfOldStores) {
  const auto text = [](OptimizerOptions options) { return FingerprintText(options, true); };
  EXPECT_EQ(text({}), "optimizer=2 momentum=false moments=0 subtract_noise=false average=0");
  EXPECT_EQ(text({.kind = OptimizerNamed("sgd"), .momentum = 0.5f}),
            "optimizer=0 momentum=true moments=0 subtract_noise=false average=0");
  EXPECT_EQ(text({.kind = OptimizerNamed("adagrad"), .average_decay = 0.75}),
            "optimizer=1 momentum=false moments=0 subtract_noise=false average=0.75");
  EXPECT_EQ(text({.kind = OptimizerNamed("adam-bc"), .moments = Moments::kLazy}),
            "optimizer=2 momentum=false moments=1 subtract_noise=true average=0");
  EXPECT_EQ(FingerprintText({.kind = OptimizerNamed("adam-bc")}, /*of_rows=*/false),
            "optimizer=2 momentum=false subtract_noise=true average=0");
}

TEST(Optimizer, AWeightThatWasNeverWrittenIsItsOwnAverage) {
  const MovingAverage average(0.9);
  const std::vector<float> row = {3, -4}, state(2 + 1);
  std::vector<float> served(2);
  average.Read(row, state, 1000, served);
  EXPECT_EQ(served, row);
}

TEST(OptimizerDeath, NoiseThatIsNotThereIsNotSubtracted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Optimizer optimizer({.kind = OptimizerNamed("adam-bc")});
  WorkerPool workers({.workers = 1});
  std::vector<float> x = {1}, state(optimizer.DenseStateFloats(1));
  EXPECT_DEATH(optimizer.StepDense(std::vector<float>{1}, 0, x, state, workers), "no noise");
  EXPECT_DEATH(Optimizer({.kind = OptimizerNamed("adam-bc"), .variance_floor = 0}), "floor");
  EXPECT_DEATH(OptimizerNamed("adamw"), "known");
}

TEST(Optimizer, SgdSubtractsTheRateTimesTheGradient) {
  Optimizer optimizer(
      {.kind = OptimizerNamed("sgd"), .learning_rate = 0.5f, .row_learning_rate = 0.25f});
  WorkerPool workers({.workers = 1});
  std::vector<float> x{1, 2}, state, row{1, 2};
  optimizer.StepDense(std::vector<float>{2, -4}, 0, x, state, workers);
  EXPECT_EQ(x, (std::vector<float>{0, 4}));
  StepRow(optimizer, std::vector<float>{2, -4}, row);
  EXPECT_EQ(row, (std::vector<float>{0.5, 3}));
}

}  // namespace
}  // namespace tacit::train
