// The sequence model's sums with low-rank carriers against gradients of each unit that are formed
// in full in float64, and then projected.
#include <gtest/gtest.h>

#include <limits>

#include "loop_carriers.h"
#include "sequence_trial.h"

namespace tacit::model {
namespace {

using testing::Added;
using testing::CheckNormIsOfWhatIsAdded;
using testing::FlatClip;
using testing::Kind;
using testing::kKinds;
using testing::LoopMatrix;
using testing::LoopPair;
using testing::OracleUnit;
using testing::PaddedUnit;
using testing::SquaredLength;
using testing::Transposed;
using testing::Trial;
using Source = CarrierOptions::Source;

LoopMatrix MatrixOf(std::span<const double> gradient, const Carriers::Weights& w) {
  return {w.in, w.out, gradient.subspan(w.offset, w.in * w.out)};
}

// A trial, and the carriers of its third step.
struct CarriedTrial {
  Trial trial;
  std::unique_ptr<Carriers> carriers;
  std::vector<Carriers::Weights> matrices = trial.layout.Matrices();

  CarriedTrial(const SequenceOptions& options, const CarrierOptions& how, uint64_t seed,
               ops::Backend& backend)
      : trial(options, seed) {
    if (options.re_attention.kappa > 0) trial.step.noise.factor_rank = how.rank;
    carriers = std::make_unique<Carriers>(how, matrices, trial.layout.Initial(seed),
                                          /*seed=*/seed + 9, backend);
    EXPECT_TRUE(carriers->Choose(2, trial.parameters));
  }
  // A gradient of all parameters, as the sum is laid out: dL and dR of matrices that have carriers.
  std::vector<double> Carry(std::span<const double> gradient) const {
    std::vector<double> numbers;
    size_t copied = 0;
    const auto copy_to = [&](size_t end) {
      numbers.insert(numbers.end(), gradient.begin() + static_cast<ptrdiff_t>(copied),
                     gradient.begin() + static_cast<ptrdiff_t>(end));
      copied = end;
    };
    for (size_t m = 0; m < matrices.size(); ++m) {
      if (carriers->pair(m).rank() == 0) continue;
      copy_to(matrices[m].offset);
      const LoopPair pair(carriers->pair(m));
      const LoopMatrix dw = MatrixOf(gradient, matrices[m]);
      for (const LoopMatrix& part : {pair.OfLeft(dw), pair.OfRight(dw)})
        numbers.insert(numbers.end(), part.at.begin(), part.at.end());
      copied = matrices[m].offset + matrices[m].in * matrices[m].out;
    }
    copy_to(gradient.size());
    return numbers;
  }
  // A group's numbers of what Carry returns.
  std::span<const double> Group(const std::vector<double>& carried, size_t g) const {
    const ParameterGroup& group = trial.layout.groups()[g];
    const size_t begin = carriers->PlaceOf(group.offset);
    return std::span(carried).subspan(begin, carriers->PlaceOf(group.offset + group.size) - begin);
  }
  size_t Carried() const {
    size_t carried = 0;
    for (size_t m = 0; m < matrices.size(); ++m) carried += carriers->pair(m).rank() > 0;
    return carried;
  }
};

void CheckAgainstProjections(const CarriedTrial& carried, const ScaleRule& rule,
                             ops::Backend& backend) {
  const Trial& trial = carried.trial;
  const SequenceSum sum = trial.Sum(rule, backend, *carried.carriers);
  const size_t count = trial.units.size(), groups = trial.layout.groups().size();
  ASSERT_EQ(sum.norms.groups, groups);
  std::vector<double> want(carried.carriers->sum_size());
  for (size_t u = 0; u < count; ++u) {
    const OracleUnit unit = trial.Oracle(u);
    ASSERT_NEAR(sum.loss[u], unit.loss, 1e-5 * (1 + unit.loss)) << "unit " << u;
    const std::vector<double> numbers = carried.Carry(unit.gradient);
    ASSERT_EQ(numbers.size(), want.size());
    const double length = std::sqrt(SquaredLength(numbers));
    double joint = 0;
    GroupNorms own{groups, 1, std::vector<float>(groups), {}};
    for (size_t g = 0; g < groups; ++g) {
      own.squared[g] = sum.norms.squared[g * count + u];
      joint += double{own.squared[g]};
      const double part = std::sqrt(SquaredLength(carried.Group(numbers, g)));
      ASSERT_NEAR(std::sqrt(double{own.squared[g]}), part, 1e-5 * part + 1e-6 * length)
          << "unit " << u << " " << trial.layout.groups()[g].name;
    }
    ASSERT_NEAR(std::sqrt(joint), length, 1e-5 * length) << "unit " << u;
    if (length == 0) continue;
    std::vector<float> scale(groups);
    rule.Scales(own, scale);
    size_t i = 0;
    for (size_t g = 0; g < groups; ++g)
      for (const double number : carried.Group(numbers, g)) want[i++] += scale[g] * number;
  }
  ASSERT_EQ(sum.values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(sum.values[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << "number " << i;
}

// Some matrices of 8 columns have carriers of rank 4, and others are too thin for them.
CarrierOptions HowOf(uint64_t kind) {
  return {.source = kind % 3 ? Source::kHistorical : Source::kRandom,
          .rank = 1 + static_cast<uint32_t>(kind % 4),
          .power_steps = 1 + static_cast<uint32_t>(kind % 2),
          .warm_up_steps = kind % 5 ? 0u : 9u};
}

TEST(CarriedSequence, NormsAndClippedSumsAreThoseOfGradientsThatAreFormedAndProjected) {
  WorkerPool one({1, false}), three({3, false});
  const auto reference = ops::MakeReferenceBackend();
  const auto single = ops::MakeCpuBackend(one), triple = ops::MakeCpuBackend(three);
  const FlatClip flat(0.3);
  const testing::PerGroup per_group;
  size_t mixed = 0;
  for (uint64_t kind = 0; kind < kKinds; ++kind) {
    const CarriedTrial carried(Kind(kind), HowOf(kind), kind + 1, *single);
    ASSERT_GT(carried.Carried(), 0u);
    mixed += carried.Carried() < carried.matrices.size();
    const ScaleRule& rule =
        kind % 2 ? static_cast<const ScaleRule&>(flat) : static_cast<const ScaleRule&>(per_group);
    for (ops::Backend* backend : {reference.get(), single.get(), triple.get()}) {
      SCOPED_TRACE(::testing::Message() << "kind " << kind << " on " << backend->name());
      CheckAgainstProjections(carried, rule, *backend);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(mixed, 0u);
}

class CarriedSequenceOnCpu : public ::testing::Test {
 protected:
  WorkerPool workers_{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
};

// The update of a step: the projection of what the units' scales leave of their gradients. Without
// the part that dL R and L dR have in common, it is another one.
TEST_F(CarriedSequenceOnCpu, TheUpdateIsTheProjectionAndCountsWhatIsInBothOnce) {
  for (const uint64_t kind : {0, 2, 3, 7, 13, 40, 41}) {
    SCOPED_TRACE(kind);
    const CarriedTrial carried(Kind(kind), {.rank = 3}, kind + 1, *backend_);
    const Trial& trial = carried.trial;
    const Carriers& carriers = *carried.carriers;
    const FlatClip rule(0.3);
    std::vector<double> formed(trial.layout.size());
    for (size_t u = 0; u < trial.units.size(); ++u) {
      const OracleUnit unit = trial.Oracle(u);
      const double length = std::sqrt(SquaredLength(carried.Carry(unit.gradient)));
      if (length == 0) continue;
      for (size_t i = 0; i < formed.size(); ++i)
        formed[i] += std::min(1.0, 0.3 / length) * unit.gradient[i];
    }
    const SequenceSum sum = trial.Sum(rule, *backend_, carriers);
    const auto expanded = carried.carriers->Expand(sum.values);
    ASSERT_TRUE(expanded);
    const std::vector<float> update(expanded->begin(), expanded->end());
    double planted = 0, length = 0;
    std::vector<double> want = formed;
    for (size_t m = 0; m < carried.matrices.size(); ++m) {
      const Carriers::Weights& w = carried.matrices[m];
      if (carriers.pair(m).rank() == 0) continue;
      const LoopPair pair(carriers.pair(m));
      const LoopMatrix projected = pair.Projected(MatrixOf(formed, w));
      std::ranges::copy(projected.at, want.begin() + static_cast<ptrdiff_t>(w.offset));
      const float* const at = sum.values.data() + carriers.PlaceOf(w.offset);
      const LoopMatrix dl(ops::ConstMatrix(at, w.in, 3)),
          dr(ops::ConstMatrix(at + w.in * 3, 3, w.out));
      const LoopMatrix twice = Added(dl * pair.right, 1, pair.left * dr);
      planted += std::pow(Added(twice, -1, projected).Length(), 2);
      length += std::pow(projected.Length(), 2);
    }
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(update[i], want[i], 1e-5) << i;
    EXPECT_GT(std::sqrt(planted / length), 0.1) << "a planted fault that would not be missed";
  }
}

// A clip that forgets that there is one for all: each group is cut to C by itself.
class ClipEachGroup final : public ScaleRule {
 public:
  explicit ClipEachGroup(double clip) : clip_(clip) {}
  void Scales(const GroupNorms& norms, std::span<float> scales) const override {
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = static_cast<float>(std::min(1.0, clip_ / std::sqrt(double{norms.squared[i]})));
  }

 private:
  const double clip_;
};

// The longest that a unit alone in a step makes the sum, dL, dR and all other numbers together.
double LongestCarriedUnit(const ScaleRule& rule, ops::Precision precision, ops::Backend& backend) {
  double longest = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SequenceOptions options = Kind(seed);
    options.precision = precision;
    CarriedTrial carried(options, {.rank = 2}, seed, backend);
    for (const PaddedUnit& unit : std::vector<PaddedUnit>(carried.trial.units)) {
      carried.trial.units = {unit};
      const SequenceSum sum = carried.trial.Sum(rule, backend, *carried.carriers);
      const std::vector<double> numbers(sum.values.begin(), sum.values.end());
      longest = std::max(longest, std::sqrt(SquaredLength(numbers)));
    }
  }
  return longest;
}

TEST_F(CarriedSequenceOnCpu, NoUnitIsLongerThanTheClipAndAClipForEachLayerIsFoundOut) {
  constexpr double kClip = 0.1;
  for (const auto precision : {ops::Precision::kF32, ops::Precision::kBf16}) {
    const double longest = LongestCarriedUnit(FlatClip(kClip), precision, *backend_);
    EXPECT_LE(longest, kClip * (1 + 1e-6));
    EXPECT_GT(longest, kClip * 0.98);
    EXPECT_GT(LongestCarriedUnit(ClipEachGroup(kClip), precision, *backend_), kClip * 1.4);
  }
}

// Each number of each unit is rounded once, and there are as many numbers as the carriers leave.
TEST(CarriedSequence, SumsOnAGridAreExactAndDoNotDependOnWorkers) {
  WorkerPool one({1, false}), three({3, false});
  const auto single = ops::MakeCpuBackend(one), triple = ops::MakeCpuBackend(three);
  for (const uint64_t kind : {0, 1, 4, 8, 45, 100, 104}) {
    SequenceOptions options = Kind(kind % 100);
    if (kind >= 100) options.precision = ops::Precision::kBf16;
    const CarriedTrial carried(options, HowOf(kind), kind + 1, *single);
    const Carriers& carriers = *carried.carriers;
    const Trial& trial = carried.trial;
    const SequenceSum plain = trial.Sum(FlatClip(0.3), *single, carriers);
    for (const double step : {0x1p-6, 0x1p-30}) {
      const SequenceSum sum = trial.Sum(FlatClip(0.3, step), *single, carriers);
      ASSERT_EQ(sum.steps.size(), carriers.sum_size());
      const auto units = static_cast<double>(trial.units.size());
      for (size_t i = 0; i < sum.steps.size(); ++i)
        ASSERT_NEAR(static_cast<double>(sum.steps[i]) * step, plain.values[i],
                    units * step / 2 + 1e-6);
      EXPECT_EQ(sum.steps, trial.Sum(FlatClip(0.3, step), *triple, carriers).steps);
      float most = 0;
      for (const float rounding : sum.norms.rounding) most = std::max(most, rounding);
      const double numbers = std::pow(2 * most / step, 2);
      EXPECT_LE(numbers, static_cast<double>(carriers.sum_size()) * 1.001);
      EXPECT_LT(carriers.sum_size(), trial.layout.size());
      if (options.negatives == 0 && options.tied) {
        EXPECT_GE(numbers, static_cast<double>(carriers.sum_size()) * 0.999);
      }
    }
  }
}

TEST_F(CarriedSequenceOnCpu, InBf16TheNormIsOfWhatIsAddedAndTheSumCloseToF32s) {
  for (const uint64_t kind : {0, 6, 12, 44}) {
    SCOPED_TRACE(kind);
    CarriedTrial carried(Kind(kind), {.rank = 2}, kind + 1, *backend_);
    const Carriers& carriers = *carried.carriers;
    carried.trial.units.resize(1);
    const SequenceSum want = carried.trial.Sum(FlatClip(1e30), *backend_, carriers);
    carried.trial.options.precision = ops::Precision::kBf16;
    CheckNormIsOfWhatIsAdded(carried.trial, *backend_, carriers);
    const SequenceSum have = carried.trial.Sum(FlatClip(1e30), *backend_, carriers);
    double off = 0, length = 0;
    for (size_t i = 0; i < want.values.size(); ++i) {
      off += std::pow(have.values[i] - want.values[i], 2);
      length += std::pow(want.values[i], 2);
    }
    EXPECT_LT(std::sqrt(off / length), 0.05);
    EXPECT_GT(std::sqrt(off / length), 1e-5) << "nothing was rounded";
  }
}

// Units that add straight into the sum, without privacy: the same numbers.
TEST_F(CarriedSequenceOnCpu, UnscaledUnitsAddUpToTheirProjections) {
  for (const uint64_t kind : {0, 9, 19, 42}) {
    SCOPED_TRACE(kind);
    const CarriedTrial carried(Kind(kind), HowOf(kind), kind + 1, *backend_);
    const Carriers& carriers = *carried.carriers;
    const SequenceSum each = carried.trial.Sum(FlatClip(1e30), *backend_, carriers);
    const SequenceSum straight = carried.trial.Sum(testing::NoClip(), *backend_, carriers);
    ASSERT_EQ(straight.values.size(), carriers.sum_size());
    for (size_t i = 0; i < each.values.size(); ++i)
      ASSERT_NEAR(straight.values[i], each.values[i], 1e-5 * (1 + std::abs(each.values[i])));
  }
}

TEST_F(CarriedSequenceOnCpu, ANormThatIsNotFiniteAddsNothing) {
  CarriedTrial carried(Kind(0), {.rank = 2}, 1, *backend_);
  Trial& trial = carried.trial;
  trial.options.length = 4;
  trial.layout = SequenceLayout(trial.options);
  trial.parameters = testing::RandomParameters(trial.layout, 1);
  trial.units = {{.id = 1, .crops = {{{1, 2}, {2, 3}}}},
                 {.id = 2, .crops = {{{1, 2, 3, 4}, {2, 3, 4, 5}}}}};
  Carriers carriers({.rank = 2}, trial.layout.Matrices(), trial.layout.Initial(1), 3, *backend_);
  ASSERT_TRUE(carriers.Choose(0, trial.parameters));
  Trial first = trial;
  first.units.resize(1);
  // A position that only crops of full length read.
  trial.parameters[trial.layout.positions().offset] = std::numeric_limits<float>::quiet_NaN();
  const SequenceSum sum = trial.Sum(FlatClip(0.3), *backend_, carriers);
  EXPECT_EQ(sum.values, first.Sum(FlatClip(0.3), *backend_, carriers).values);
}

// A model that takes steps with and without carriers in turn keeps nothing of one for the other.
TEST_F(CarriedSequenceOnCpu, AStepWithoutThemIsAsBefore) {
  for (const uint64_t kind : {0, 4, 9, 46}) {
    SCOPED_TRACE(kind);
    const CarriedTrial carried(Kind(kind), {.rank = 2}, kind + 1, *backend_);
    const Trial& trial = carried.trial;
    const FlatClip rule(0.3);
    const SequenceSum whole = trial.Sum(rule, *backend_);
    const SequenceSum thin = trial.Sum(rule, *backend_, *carried.carriers);
    EXPECT_LT(thin.values.size(), whole.values.size());
    SequenceModel model(trial.options, *backend_);
    SequenceSum sum;
    SequenceModel::Step with = trial.step;
    with.map = carried.carriers.get();
    const testing::PaddedUnits units(trial.options, trial.units);
    for (int turn = 0; turn < 2; ++turn) {
      ASSERT_TRUE(model.ClippedSum(trial.parameters, units, trial.step, rule, &sum));
      EXPECT_EQ(sum.values, whole.values);
      EXPECT_EQ(sum.norms.squared, whole.norms.squared);
      ASSERT_TRUE(model.ClippedSum(trial.parameters, units, with, rule, &sum));
      EXPECT_EQ(sum.values, thin.values);
      EXPECT_EQ(sum.norms.squared, thin.norms.squared);
    }
  }
}

// The noise that carriers bring to a layer's output, by sampling them and it. The variance that
// whole gradients would have had is another one.
TEST_F(CarriedSequenceOnCpu, TheVarianceOfALayersNoiseIsThatOfCarriersOnAverage) {
  constexpr size_t kIn = 12, kOut = 20, kDraws = 4000;
  constexpr uint32_t kRank = 3;
  const LinearLayer layer{kIn, kOut, 0};
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> input(kIn), none(kIn), squares(kIn * kOut), predicted(kOut);
  for (float& x : input) x = normal(random);
  Carriers carriers({.source = Source::kRandom, .rank = kRank}, {{kIn, kOut, 0}},
                    std::vector<float>(layer.size()), 5, *backend_);
  std::vector<float> noise(carriers.sum_size());
  std::vector<double> squared(kOut);
  for (size_t draw = 0; draw < kDraws; ++draw) {
    ASSERT_TRUE(carriers.Choose(draw, std::vector<float>(layer.size())));
    for (float& z : noise) z = normal(random);
    const auto expanded = carriers.Expand(noise);
    ASSERT_TRUE(expanded);
    const std::span<const float> update = *expanded;
    for (size_t j = 0; j < kOut; ++j) {
      double y = update[kIn * kOut + j];
      for (size_t i = 0; i < kIn; ++i) y += input[i] * update[i * kOut + j];
      squared[j] += y * y / kDraws;
    }
  }
  double sampled = 0;
  for (const double s : squared) sampled += s / kOut;
  const auto ops = ops::MakeCpuUnitOps(ops::Precision::kF32);
  const auto predict = [&](uint32_t rank) {
    const ParameterNoise of{1, {}, rank};
    EXPECT_TRUE(LinearVariance(*ops, {input.data(), 1, kIn}, {none.data(), 1, kIn},
                               {squares.data(), kIn, kOut}, 0, of.Of(layer),
                               {predicted.data(), 1, kOut}));
    return double{predicted[0]};
  };
  EXPECT_NEAR(predict(kRank) / sampled, 1, 0.03);
  EXPECT_GT(predict(0) / sampled, 1.5) << "a planted fault that would not be missed";
  // Layers for which they save nothing have none.
  EXPECT_EQ(predict(8), predict(0));
}

}  // namespace
}  // namespace tacit::model
