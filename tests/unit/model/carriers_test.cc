// Low-rank carriers against loops in float64: what they are, what an update is made of, and the
// click model's sums and norms against gradients of each unit that are formed in full.
#include "model/carriers/carriers.h"

#include <gtest/gtest.h>

#include <random>

#include "loop_carriers.h"
#include "pctr_step.h"
#include "scale_rules.h"

namespace tacit::model {
namespace {

using testing::Added;
using testing::LoopGradient;
using testing::LoopMatrix;
using testing::LoopPair;
using testing::Problem;
using testing::StepResult;
using testing::Transposed;
using Source = CarrierOptions::Source;

std::vector<float> Normal(std::mt19937_64& random, size_t n, float scale = 1) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

// Adds a random matrix of this rank to the parameters from `offset`.
void AddOfRank(std::mt19937_64& random, const Carriers::Weights& w, size_t rank, float scale,
               std::vector<float>* parameters) {
  for (size_t k = 0; k < rank; ++k) {
    const auto a = Normal(random, w.in), b = Normal(random, w.out, scale);
    for (size_t i = 0; i < w.in; ++i)
      for (size_t j = 0; j < w.out; ++j) (*parameters)[w.offset + i * w.out + j] += a[i] * b[j];
  }
}

LoopMatrix Part(const std::vector<float>& parameters, const Carriers::Weights& w) {
  return LoopMatrix(ops::ConstMatrix(parameters.data() + w.offset, w.in, w.out));
}

class CarriersTest : public ::testing::Test {
 protected:
  // Two matrices with carriers, one that is too thin for them, and numbers before, between and
  // after.
  const std::vector<Carriers::Weights> weights_ = {{40, 30, 5}, {25, 1, 1210}, {17, 60, 1240}};
  static constexpr size_t kParameters = 1240 + 17 * 60 + 7;

  Carriers Make(const CarrierOptions& options, const std::vector<float>& initial,
                uint64_t seed = 3) {
    return Carriers(options, weights_, initial, seed, *backend_);
  }
  static void ExpectOrthonormal(ops::ConstMatrix rows) {
    const LoopMatrix x(rows);
    const LoopMatrix gram = x * Transposed(x);
    for (size_t r = 0; r < gram.rows; ++r)
      for (size_t c = 0; c < gram.cols; ++c) ASSERT_NEAR(gram(r, c), r == c, 1e-6);
  }

  WorkerPool workers_{WorkerPool::Options{.workers = 2}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  std::mt19937_64 random_{7};
};

TEST_F(CarriersTest, MatricesForWhichTheySaveNothingHaveNone) {
  Carriers carriers = Make({.rank = 4}, std::vector<float>(kParameters));
  EXPECT_EQ(carriers.pair(0).rank(), 4u);
  EXPECT_EQ(carriers.pair(1).rank(), 0u);
  EXPECT_EQ(carriers.pair(2).rank(), 4u);
  EXPECT_EQ(carriers.sum_size(), kParameters - (1200 - 4 * 70) - (17 * 60 - 4 * 77));
  EXPECT_EQ(carriers.PlaceOf(5), 5u);
  EXPECT_EQ(carriers.PlaceOf(1205), 5u + 4 * 70);
  EXPECT_EQ(carriers.PlaceOf(kParameters), carriers.sum_size());
}

TEST_F(CarriersTest, AreOrthonormalWhateverTheParametersAre) {
  const auto initial = Normal(random_, kParameters);
  std::vector<float> rank_two = initial, broken = initial;
  for (const auto& w : weights_) AddOfRank(random_, w, 2, 1, &rank_two);
  broken[100] = std::nanf("");
  broken[1300] = std::numeric_limits<float>::infinity();
  for (const Source source : {Source::kHistorical, Source::kRandom})
    for (const auto& parameters : {initial, rank_two, broken, Normal(random_, kParameters),
                                   Normal(random_, kParameters, 1e-20f)})
      for (const uint64_t warm_up : {0, 9}) {
        Carriers carriers = Make({.source = source, .rank = 6, .warm_up_steps = warm_up}, initial);
        ASSERT_TRUE(carriers.Choose(4, parameters));
        for (const size_t m : {0, 2}) {
          ExpectOrthonormal(carriers.pair(m).left);
          ExpectOrthonormal(carriers.pair(m).right);
        }
      }
}

// The part of a matrix that lies outside the projection, as a share of its length.
double Outside(const Carriers& carriers, size_t m, const LoopMatrix& x) {
  const LoopPair pair(carriers.pair(m));
  return Added(x, -1, pair.Projected(x)).Length() / x.Length();
}

TEST_F(CarriersTest, OneStepOfThePowerMethodFindsWhatHasMoved) {
  const auto initial = Normal(random_, kParameters);
  std::vector<float> parameters = initial;
  for (const auto& w : weights_) AddOfRank(random_, w, 3, 0.1f, &parameters);
  std::vector<float> moved(kParameters);
  for (size_t i = 0; i < kParameters; ++i) moved[i] = parameters[i] - initial[i];
  Carriers carriers = Make({.rank = 4}, initial);
  ASSERT_TRUE(carriers.Choose(0, parameters));
  for (const size_t m : {0, 2}) {
    EXPECT_LT(Outside(carriers, m, Part(moved, weights_[m])), 1e-5);
    EXPECT_GT(Outside(carriers, m, Part(parameters, weights_[m])), 0.3);
  }
  // In the warm-up they are those of the weights themselves.
  const std::vector<float> begun(kParameters);
  std::vector<float> weights(kParameters);
  for (const auto& w : weights_) AddOfRank(random_, w, 3, 0.1f, &weights);
  Carriers warming = Make({.rank = 4, .warm_up_steps = 5}, weights);
  ASSERT_TRUE(warming.Choose(4, weights));
  for (const size_t m : {0, 2}) EXPECT_LT(Outside(warming, m, Part(weights, weights_[m])), 1e-5);
  // After it nothing has moved here: any directions do.
  ASSERT_TRUE(warming.Choose(5, weights));
  for (const size_t m : {0, 2}) EXPECT_GT(Outside(warming, m, Part(weights, weights_[m])), 0.3);
}

// The energy that rank r can hold at most is that of the r largest singular values, here known: a
// sum of orthogonal directions.
TEST_F(CarriersTest, MoreStepsComeNearerToTheLargestDirections) {
  const std::vector<float> initial(kParameters);
  std::vector<float> parameters(kParameters);
  // Directions out of a discrete cosine transform are orthogonal.
  const auto& w = weights_[0];
  const auto cosine = [](size_t k, size_t i, size_t n) {
    const double angle = M_PI * static_cast<double>(k) * (static_cast<double>(i) + 0.5);
    return std::cos(angle / static_cast<double>(n)) * std::sqrt(2.0 / static_cast<double>(n));
  };
  double best = 0, whole = 0;
  for (size_t k = 1; k <= 20; ++k) {
    const double size = std::pow(0.8, k);
    (k <= 4 ? best : whole) += size * size;
    for (size_t i = 0; i < w.in; ++i)
      for (size_t j = 0; j < w.out; ++j)
        parameters[w.offset + i * w.out + j] +=
            static_cast<float>(size * cosine(k, i, w.in) * cosine(21 - k, j, w.out));
  }
  whole += best;
  const auto missed = [&](const CarrierOptions& options) {
    Carriers carriers = Make(options, initial);
    EXPECT_TRUE(carriers.Choose(0, parameters));
    // With L alone: L L^T Delta.
    const LoopPair pair(carriers.pair(0));
    const LoopMatrix x = Part(parameters, w);
    return std::pow(Added(x, -1, pair.left * pair.OfRight(x)).Length(), 2);
  };
  const double at_least = whole - best;
  const double random = missed({.source = Source::kRandom, .rank = 4});
  const double one = missed({.rank = 4}), many = missed({.rank = 4, .power_steps = 60});
  EXPECT_GT(random, 0.7 * whole);
  EXPECT_LT(one, 0.5 * random);
  EXPECT_NEAR(many, at_least, 1e-4 * whole);
  EXPECT_GE(one, many - 1e-6);
}

TEST_F(CarriersTest, FollowFromSeedStepAndParametersAlone) {
  const auto initial = Normal(random_, kParameters), parameters = Normal(random_, kParameters);
  for (const Source source : {Source::kHistorical, Source::kRandom}) {
    const auto left = [&](uint64_t seed, uint64_t step, uint64_t before) {
      Carriers carriers = Make({.source = source, .rank = 3}, initial, seed);
      if (before > 0) {
        EXPECT_TRUE(carriers.Choose(before, initial));
      }
      EXPECT_TRUE(carriers.Choose(step, parameters));
      return LoopMatrix(carriers.pair(2).left).at;
    };
    EXPECT_EQ(left(3, 8, 0), left(3, 8, 5));
    EXPECT_NE(left(3, 8, 0), left(3, 9, 0));
    EXPECT_NE(left(3, 8, 0), left(4, 8, 0));
  }
}

TEST_F(CarriersTest, RandomOnesLookEverywhere) {
  // Each number of a random unit vector has the variance 1 / n.
  double squares = 0, fourth = 0;
  size_t n = 0;
  Carriers carriers = Make({.source = Source::kRandom, .rank = 4}, std::vector<float>(kParameters));
  for (uint64_t step = 0; step < 200; ++step) {
    ASSERT_TRUE(carriers.Choose(step, std::vector<float>(kParameters)));
    for (double x : LoopMatrix(carriers.pair(0).left).at) {
      squares += x * x * 40;
      fourth += std::pow(x * x * 40, 2);
      ++n;
    }
  }
  EXPECT_NEAR(squares / static_cast<double>(n), 1, 1e-5);
  // 3 n / (n + 2) for a point of a sphere; 1.7 for numbers that are uniform.
  EXPECT_NEAR(fourth / static_cast<double>(n), 3 * 40.0 / 42, 0.15);
}

TEST_F(CarriersTest, TheUpdateOfAGradientIsItsProjection) {
  for (const Source source : {Source::kHistorical, Source::kRandom}) {
    const auto initial = Normal(random_, kParameters), parameters = Normal(random_, kParameters);
    const auto gradient = Normal(random_, kParameters);
    Carriers carriers = Make({.source = source, .rank = 5}, initial);
    ASSERT_TRUE(carriers.Choose(1, parameters));
    std::vector<float> sum;
    size_t copied = 0;
    for (size_t m = 0; m < weights_.size(); ++m) {
      const auto& w = weights_[m];
      if (carriers.pair(m).rank() == 0) continue;
      sum.insert(sum.end(), gradient.begin() + copied, gradient.begin() + w.offset);
      const LoopPair pair(carriers.pair(m));
      const LoopMatrix dw = Part(gradient, w);
      for (double x : pair.OfLeft(dw).at) sum.push_back(static_cast<float>(x));
      for (double x : pair.OfRight(dw).at) sum.push_back(static_cast<float>(x));
      copied = w.offset + w.in * w.out;
    }
    sum.insert(sum.end(), gradient.begin() + copied, gradient.end());
    const auto update = carriers.Expand(sum);
    ASSERT_TRUE(update);
    std::vector<double> want(gradient.begin(), gradient.end());
    for (const size_t m : {0, 2}) {
      const LoopMatrix projected =
          LoopPair(carriers.pair(m)).Projected(Part(gradient, weights_[m]));
      std::copy(projected.at.begin(), projected.at.end(), want.begin() + weights_[m].offset);
    }
    for (size_t i = 0; i < kParameters; ++i) ASSERT_NEAR((*update)[i], want[i], 1e-5) << i;
  }
}

// Any sum at all, such as noise: (dL) R + L (dR) - L L^T (dL) R.
TEST_F(CarriersTest, TheUpdateOfNoiseIsThePapersFormula) {
  const auto initial = Normal(random_, kParameters), parameters = Normal(random_, kParameters);
  Carriers carriers = Make({.rank = 5}, initial);
  ASSERT_TRUE(carriers.Choose(1, parameters));
  const auto sum = Normal(random_, carriers.sum_size());
  const auto expanded = carriers.Expand(sum);
  ASSERT_TRUE(expanded);
  const std::vector<float> update(expanded->begin(), expanded->end());
  for (const size_t m : {0, 2}) {
    const auto& w = weights_[m];
    const LoopPair pair(carriers.pair(m));
    const float* const at = sum.data() + carriers.PlaceOf(w.offset);
    const LoopMatrix dl(ops::ConstMatrix(at, w.in, 5)),
        dr(ops::ConstMatrix(at + w.in * 5, 5, w.out));
    const LoopMatrix left = dl * pair.right;
    const LoopMatrix want =
        Added(Added(left, 1, pair.left * dr), -1, pair.left * (Transposed(pair.left) * left));
    const LoopMatrix have = Part(update, w);
    for (size_t i = 0; i < want.at.size(); ++i) ASSERT_NEAR(have.at[i], want.at[i], 1e-5);
  }
}

// The sum of a problem's units with carriers, all in float64: full gradients, their dL and dR,
// scaled by group.
struct LoopCarried {
  std::vector<std::vector<double>> unit;     // each unit's dense numbers, as the sum is laid out
  std::vector<std::vector<double>> squared;  // [group][unit]
};

LoopCarried CarryUnits(const Problem& problem, const Carriers& carriers) {
  const auto widths = problem.model.Widths();
  LoopCarried carried;
  carried.squared.resize(widths.size());
  for (const LoopGradient& g : problem.UnitGradients()) {
    std::vector<double> numbers;
    size_t at = 0;
    for (size_t l = 0; l + 1 < widths.size(); ++l) {
      const size_t in = widths[l], out = widths[l + 1], begin = numbers.size();
      const std::span<const double> weights = std::span(g.dense).subspan(at, in * out);
      if (carriers.pair(l).rank() == 0) {
        numbers.insert(numbers.end(), weights.begin(), weights.end());
      } else {
        const LoopPair pair(carriers.pair(l));
        const LoopMatrix dw(in, out, weights);
        for (const LoopMatrix& half : {pair.OfLeft(dw), pair.OfRight(dw)})
          numbers.insert(numbers.end(), half.at.begin(), half.at.end());
      }
      at += in * out;
      numbers.insert(numbers.end(), g.dense.begin() + at, g.dense.begin() + at + out);
      at += out;
      carried.squared[l].push_back(testing::SquaredLength(std::span(numbers).subspan(begin)));
    }
    double rows = 0;
    for (const auto& [row, values] : g.rows) rows += testing::SquaredLength(values);
    carried.squared.back().push_back(rows);
    carried.unit.push_back(std::move(numbers));
  }
  return carried;
}

class CarriedPctr : public ::testing::Test {
 protected:
  struct Run {
    StepResult result;
    std::unique_ptr<Carriers> carriers;
  };
  static Run RunCarried(const Problem& problem, const CarrierOptions& options,
                        const ScaleRule& rule, ops::Backend& backend,
                        ops::Precision precision = ops::Precision::kF32) {
    Pctr model(problem.ModelOptions(precision), backend);
    Run run;
    run.carriers =
        std::make_unique<Carriers>(options, model.Matrices(), model.InitialDense(5), 5, backend);
    EXPECT_TRUE(run.carriers->Choose(2, problem.dense_parameters));
    run.result = testing::RunStep(problem, testing::KeepAll(problem), rule, model);
    EXPECT_TRUE(model.ClippedSum(problem.View(), problem.activations, testing::KeepAll(problem),
                                 rule, &run.result.sum, &run.result.norms, *run.carriers));
    return run;
  }
  WorkerPool one_{WorkerPool::Options{}}, three_{WorkerPool::Options{.workers = 3}};
};

TEST_F(CarriedPctr, MatchesCarriersOfMaterialisedGradients) {
  const auto reference = ops::MakeReferenceBackend();
  const auto single = ops::MakeCpuBackend(one_), triple = ops::MakeCpuBackend(three_);
  const testing::FlatClip flat(0.7);
  const testing::PerGroup per_group;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Problem::Options options{.examples = seed % 40, .one_example_per_unit = seed % 4 == 0};
    if (seed % 5 == 0) options.hidden = {33, 20, 31};
    const ScaleRule& rule =
        seed % 2 ? static_cast<const ScaleRule&>(flat) : static_cast<const ScaleRule&>(per_group);
    const Problem problem(seed, options);
    for (ops::Backend* backend : {reference.get(), single.get(), triple.get()}) {
      const Run run = RunCarried(problem,
                                 {.source = seed % 3 ? Source::kHistorical : Source::kRandom,
                                  .rank = 1 + static_cast<uint32_t>(seed % 3)},
                                 rule, *backend);
      EXPECT_GT(run.carriers->pair(0).rank(), 0u);
      const auto want = CarryUnits(problem, *run.carriers);
      const GroupNorms& norms = run.result.norms;
      ASSERT_EQ(norms.groups, want.squared.size());
      for (size_t g = 0; g < norms.groups; ++g)
        for (size_t u = 0; u < norms.units; ++u) {
          const double length = std::sqrt(want.squared[g][u]);
          ASSERT_NEAR(std::sqrt(norms.squared[g * norms.units + u]), length, 1e-5 * length + 1e-10)
              << "group " << g << " unit " << u;
        }
      std::vector<float> scales(norms.squared.size());
      rule.Scales(norms, scales);
      std::vector<double> sum(run.carriers->sum_size());
      const auto widths = problem.model.Widths();
      for (size_t u = 0; u < norms.units; ++u) {
        size_t i = 0, offset = 0;
        for (size_t l = 0; l + 1 < widths.size(); ++l) {
          offset += (widths[l] + 1) * widths[l + 1];
          for (const size_t end = run.carriers->PlaceOf(offset); i < end; ++i)
            sum[i] += scales[l * norms.units + u] * want.unit[u][i];
        }
      }
      ASSERT_EQ(run.result.sum.dense.size(), sum.size());
      for (size_t i = 0; i < sum.size(); ++i)
        ASSERT_NEAR(run.result.sum.dense[i], sum[i], 2e-5 * (1 + std::abs(sum[i]))) << i;
    }
  }
}

// A clip that forgets that there is one for all: each group is cut to C by itself.
class ClipEachLayer final : public ScaleRule {
 public:
  explicit ClipEachLayer(double clip) : clip_(clip) {}
  void Scales(const GroupNorms& norms, std::span<float> scales) const override {
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = static_cast<float>(std::min(1.0, clip_ / std::sqrt(double{norms.squared[i]})));
  }

 private:
  const double clip_;
};

// The longest that a unit alone in a batch makes the sum: (dL, dR), biases and rows as one vector.
double LongestUnit(const ScaleRule& rule, ops::Backend& backend, ops::Precision precision) {
  double longest = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Problem problem(seed, {.examples = 1 + seed % 4, .hidden = {24, 16}, .spread = 2});
    for (uint32_t& unit : problem.unit_of) unit = 0;
    problem.units = 1;
    problem.Index();
    Pctr model(problem.ModelOptions(precision), backend);
    Carriers carriers({.rank = 3}, model.Matrices(), model.InitialDense(seed), seed, backend);
    EXPECT_TRUE(carriers.Choose(seed, problem.dense_parameters));
    StepResult result = testing::RunStep(problem, testing::KeepAll(problem), rule, model);
    EXPECT_TRUE(model.ClippedSum(problem.View(), problem.activations, testing::KeepAll(problem),
                                 rule, &result.sum, &result.norms, carriers));
    double squared = 0;
    for (float x : result.sum.dense) squared += double{x} * x;
    for (float x : result.sum.row_values) squared += double{x} * x;
    longest = std::max(longest, std::sqrt(squared));
  }
  return longest;
}

TEST_F(CarriedPctr, NoUnitIsLongerThanTheClipAndAClipForEachLayerIsFoundOut) {
  const auto backend = ops::MakeCpuBackend(one_);
  constexpr double kClip = 0.3;
  for (const auto precision : {ops::Precision::kF32, ops::Precision::kBf16}) {
    const double longest = LongestUnit(testing::FlatClip(kClip), *backend, precision);
    EXPECT_LE(longest, kClip * (1 + 1e-6));
    EXPECT_GT(longest, kClip * 0.98);
    EXPECT_GT(LongestUnit(ClipEachLayer(kClip), *backend, precision), kClip * 1.4);
  }
}

TEST_F(CarriedPctr, InBf16IsCloseToF32) {
  const auto backend = ops::MakeCpuBackend(one_);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Problem problem(seed, {.examples = 150, .hidden = {40, 24}, .spread = 0.5f});
    const Run want = RunCarried(problem, {.rank = 4}, testing::NoClip(), *backend);
    const Run have =
        RunCarried(problem, {.rank = 4}, testing::NoClip(), *backend, ops::Precision::kBf16);
    double off = 0, length = 0;
    for (size_t i = 0; i < want.result.sum.dense.size(); ++i) {
      off += std::pow(have.result.sum.dense[i] - want.result.sum.dense[i], 2);
      length += std::pow(want.result.sum.dense[i], 2);
    }
    EXPECT_LT(std::sqrt(off / length), 0.05);
    EXPECT_GT(std::sqrt(off / length), 1e-5) << "nothing was rounded";
  }
}

TEST_F(CarriedPctr, RoundingIsBoundedByTheNumbersThatAreSummed) {
  const auto backend = ops::MakeCpuBackend(one_);
  Problem problem(4, {.examples = 6, .one_example_per_unit = true, .hidden = {64, 48}});
  const double step = 0x1p-20;
  const testing::FlatClip rule(1, step);
  const Run carried = RunCarried(problem, {.rank = 2}, rule, *backend);
  const StepResult whole = testing::RunWholeStep(problem, rule, *backend);
  const auto dense = [&](const StepResult& result) {
    return step * std::sqrt(static_cast<double>(result.sum.dense.size()));
  };
  EXPECT_LT(carried.result.sum.dense.size(), whole.sum.dense.size() / 3);
  for (size_t u = 0; u < problem.units; ++u)
    EXPECT_NEAR(carried.result.norms.rounding[u] - dense(carried.result),
                whole.norms.rounding[u] - dense(whole), 1e-3 * step);
}

// A unit that overflows adds nothing to dL and dR either.
TEST_F(CarriedPctr, AUnitThatIsNotFiniteAddsNothing) {
  const auto backend = ops::MakeCpuBackend(one_);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf(""), 3e38f}) {
    Problem problem(21, {.examples = 20});
    const uint32_t unit = problem.unit_of[10];
    problem.dense[10 * problem.model.dense_width] = bad;
    const Run run = RunCarried(problem, {.rank = 2}, testing::FlatClip(0.5), *backend);
    for (float x : run.result.sum.dense) ASSERT_TRUE(std::isfinite(x));
    for (size_t g = 0; g < run.result.norms.groups; ++g)
      EXPECT_EQ(run.result.norms.squared[g * run.result.norms.units + unit], 0);
  }
}

// Without carriers nothing of a step with them is left over.
TEST_F(CarriedPctr, AStepWithoutThemIsAsBefore) {
  const auto backend = ops::MakeCpuBackend(one_);
  const Problem problem(9, {.examples = 30});
  const testing::FlatClip rule(0.5);
  const StepResult want = testing::RunWholeStep(problem, rule, *backend);
  Pctr model(problem.ModelOptions(), *backend);
  Carriers carriers({.rank = 2}, model.Matrices(), model.InitialDense(5), 5, *backend);
  ASSERT_TRUE(carriers.Choose(0, problem.dense_parameters));
  StepResult result = testing::RunStep(problem, testing::KeepAll(problem), rule, model);
  ASSERT_TRUE(model.ClippedSum(problem.View(), problem.activations, testing::KeepAll(problem), rule,
                               &result.sum, &result.norms, carriers));
  EXPECT_NE(result.sum.dense.size(), want.sum.dense.size());
  ASSERT_TRUE(model.ClippedSum(problem.View(), problem.activations, testing::KeepAll(problem), rule,
                               &result.sum, &result.norms));
  EXPECT_EQ(result.sum.dense, want.sum.dense);
  EXPECT_EQ(result.norms.squared, want.norms.squared);
}

}  // namespace
}  // namespace tacit::model
