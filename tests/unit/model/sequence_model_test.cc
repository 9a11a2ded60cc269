// The sequence model against float64 loops whose gradients come from a tape.
#include "model/sequence/sequence_model.h"

#include <gtest/gtest.h>

#include <limits>

#include "model/sequence/coins.h"
#include "model/sequence/logit_prior.h"
#include "model/sequence/output_layer.h"
#include "scale_rules.h"
#include "sequence_trial.h"

namespace tacit::model {
namespace {

using testing::CheckNormIsOfWhatIsAdded;
using testing::Kind;
using testing::kKinds;
using testing::kKnownDecay;
using testing::OracleUnit;
using testing::PaddedUnit;
using testing::PaddedUnits;
using testing::SequenceOracle;
using testing::SquaredLength;
using testing::Trial;

void CheckAgainstOracle(const Trial& trial, const ScaleRule& rule, ops::Backend& backend) {
  const SequenceSum sum = trial.Sum(rule, backend);
  const auto groups = trial.layout.groups();
  const size_t count = trial.units.size();
  ASSERT_EQ(sum.norms.groups, groups.size());
  ASSERT_EQ(sum.norms.units, count);
  std::vector<double> want(trial.layout.size());
  for (size_t u = 0; u < count; ++u) {
    const OracleUnit unit = trial.Oracle(u);
    ASSERT_NEAR(sum.loss[u], unit.loss, 1e-5 * (1 + unit.loss)) << "unit " << u;
    const double length = std::sqrt(SquaredLength(unit.gradient));
    double joint = 0;
    GroupNorms own{groups.size(), 1, std::vector<float>(groups.size()), {}};
    for (size_t g = 0; g < groups.size(); ++g) {
      const double squared =
          SquaredLength(std::span(unit.gradient).subspan(groups[g].offset, groups[g].size));
      own.squared[g] = sum.norms.squared[g * count + u];
      joint += double{own.squared[g]};
      ASSERT_NEAR(std::sqrt(double{own.squared[g]}), std::sqrt(squared),
                  1e-5 * std::sqrt(squared) + 1e-6 * length)
          << "unit " << u << " " << groups[g].name;
    }
    ASSERT_NEAR(std::sqrt(joint), length, 1e-5 * length) << "unit " << u;
    if (length == 0) continue;
    std::vector<float> scale(groups.size());
    rule.Scales(own, scale);
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t i = 0; i < groups[g].size; ++i)
        want[groups[g].offset + i] += scale[g] * unit.gradient[groups[g].offset + i];
  }
  ASSERT_EQ(sum.values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(sum.values[i], want[i], 2e-5 * (1 + std::abs(want[i]))) << "parameter " << i;
}

TEST(SequenceModel, NormsAndClippedSumsAreThoseOfMaterialisedGradients) {
  WorkerPool one({1, false}), three({3, false});
  const auto reference = ops::MakeReferenceBackend();
  const auto single = ops::MakeCpuBackend(one), triple = ops::MakeCpuBackend(three);
  const testing::FlatClip flat(0.3);
  const testing::PerGroup per_group;
  for (uint64_t kind = 0; kind < kKinds; ++kind) {
    const Trial trial(Kind(kind), kind + 1);
    const ScaleRule& rule =
        kind % 2 ? static_cast<const ScaleRule&>(flat) : static_cast<const ScaleRule&>(per_group);
    for (ops::Backend* backend : {reference.get(), single.get(), triple.get()}) {
      SCOPED_TRACE(::testing::Message() << "kind " << kind << " on " << backend->name());
      CheckAgainstOracle(trial, rule, *backend);
      if (HasFatalFailure()) return;
    }
  }
}

// More positions than are gone through together, more numbers than are squared at once, columns of
// more than one tile.
TEST(SequenceModel, NormsOfLongHistoriesAndLargeCatalogues) {
  WorkerPool workers({1, false});
  const auto reference = ops::MakeReferenceBackend(), cpu = ops::MakeCpuBackend(workers);
  for (const bool tied : {true, false}) {
    SequenceOptions options;
    options.catalogue = 601;
    options.length = 150;
    options.width = 9;
    options.blocks = 1;
    options.tied = tied;
    options.item_bias = tied;
    options.label_smoothing = tied ? 0 : 0.1f;
    Trial trial(options, 5);
    trial.units.resize(1);
    std::mt19937_64 random(7);
    PaddedUnit::Crop crop;
    for (uint32_t i = 0; i < options.length; ++i) {
      crop.inputs.push_back(static_cast<uint32_t>(random() % options.catalogue));
      crop.targets.push_back(static_cast<uint32_t>(random() % options.catalogue));
    }
    trial.units[0].crops = {crop};
    for (ops::Backend* backend : {reference.get(), cpu.get()}) {
      SCOPED_TRACE(backend->name());
      CheckAgainstOracle(trial, testing::FlatClip(0.3), *backend);
      if (HasFatalFailure()) return;
      CheckNormIsOfWhatIsAdded(trial, *backend);
      trial.options.precision = ops::Precision::kBf16;
      CheckNormIsOfWhatIsAdded(trial, *backend);
      trial.options.precision = ops::Precision::kF32;
      if (HasFatalFailure()) return;
    }
  }
}

// Known logits, and a table of them: row by row what follows an item.
struct Known {
  explicit Known(uint32_t catalogue, uint64_t seed) : rows(catalogue) {
    std::mt19937_64 random(seed);
    std::vector<float> table;
    for (auto& row : rows)
      for (uint32_t b = 0; b < catalogue; ++b)
        row.push_back(table.emplace_back(std::normal_distribution<float>()(random)));
    prior = std::make_unique<DecayedLogits>(std::move(table), catalogue, kKnownDecay);
  }
  std::vector<std::vector<double>> rows;
  std::unique_ptr<DecayedLogits> prior;
};

TEST(SequenceModel, WhatIsKnownBesideIsAddedToTheLogits) {
  WorkerPool workers({2, false});
  const auto reference = ops::MakeReferenceBackend(), cpu = ops::MakeCpuBackend(workers);
  for (const uint64_t kind : {0, 1, 6, 7, 10, 40, 43}) {
    SequenceOptions options = Kind(kind);
    options.label_smoothing = 0;
    ASSERT_EQ(options.negatives, 0u);
    Trial trial(options, kind + 1);
    const Known known(options.catalogue, kind);
    trial.known = known.rows;
    trial.prior = known.prior.get();
    for (ops::Backend* backend : {reference.get(), cpu.get()}) {
      SCOPED_TRACE(::testing::Message() << "kind " << kind << " on " << backend->name());
      CheckAgainstOracle(trial, testing::FlatClip(0.3), *backend);
      if (HasFatalFailure()) return;
    }
    // Planted: the same logits one item late.
    std::ranges::rotate(trial.known, trial.known.begin() + 1);
    const SequenceSum sum = trial.Sum(testing::NoClip(), *cpu);
    double off = 0;
    for (size_t u = 0; u < trial.units.size(); ++u)
      off = std::max(off, std::abs(sum.loss[u] - trial.Oracle(u).loss));
    EXPECT_GT(off, 0.1);
  }
}

class SequenceOnCpu : public ::testing::Test {
 protected:
  WorkerPool workers_{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
};

// The tape's gradients, and with them the model's, are the slopes of the loss: every group, a few
// parameters each.
TEST_F(SequenceOnCpu, GradientsAreFiniteDifferences) {
  for (const uint64_t kind : {0, 2, 4, 7, 11, 14, 40, 41, 50}) {
    SequenceOptions options = Kind(kind);
    options.re_attention.kappa = 0;
    Trial trial(options, kind + 1);
    trial.units.resize(1);
    const SequenceSum sum = trial.Sum(testing::NoClip(), *backend_);
    std::mt19937_64 random(kind);
    for (const ParameterGroup& group : trial.layout.groups()) {
      for (int k = 0; k < 6; ++k) {
        const size_t at = group.offset + random() % group.size;
        constexpr double kStep = 1e-5;
        SequenceOracle oracle(trial.layout, trial.parameters, trial.ContextOf(trial.units[0]));
        oracle.Nudge(at, kStep);
        const double above = oracle.Run(trial.units[0]).loss;
        oracle.Nudge(at, -2 * kStep);
        const double slope = (above - oracle.Run(trial.units[0]).loss) / (2 * kStep);
        ASSERT_NEAR(sum.values[at], slope, 2e-5 * (1 + std::abs(slope)))
            << "kind " << kind << " " << group.name << " parameter " << at - group.offset;
      }
    }
  }
}

// algorithms of phantom clipping, in float64: the squared norm of the shared embedding's gradient
// is the input side's, the output side's and twice what they have in common.
struct PhantomTerms {
  double input = 0, output = 0, common = 0;
  double input_as_printed = 0;  // eq. 4.1 squares the products of the first term once more
};

PhantomTerms TermsOf(const OracleUnit& unit) {
  PhantomTerms terms;
  const auto dot = [](const std::vector<double>& x, const std::vector<double>& y) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
    return sum;
  };
  for (size_t a = 0; a < unit.item.size(); ++a)
    for (size_t b = 0; b < unit.item.size(); ++b) {
      if (unit.item[a] == unit.item[b]) {
        const double product = dot(unit.input_grad[a], unit.input_grad[b]);
        terms.input += product;
        terms.input_as_printed += product * product;
      }
      terms.output +=
          dot(unit.logit_grad[a], unit.logit_grad[b]) * dot(unit.hidden[a], unit.hidden[b]);
      terms.common += unit.logit_grad[b][unit.item[a]] * dot(unit.input_grad[a], unit.hidden[b]);
    }
  return terms;
}

Trial TiedTrial(uint64_t seed) {
  SequenceOptions options = Kind(0);
  options.length = 6;
  options.blocks = 2;
  options.mean_loss = true;
  return Trial(options, seed);
}

TEST_F(SequenceOnCpu, TiedNormIsThePhantomIdentityAndNotItsMisprints) {
  bool cross_seen = false, square_seen = false;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Trial trial = TiedTrial(seed);
    const SequenceSum sum = trial.Sum(testing::FlatClip(1), *backend_);
    const ParameterTable& items = trial.layout.items();
    for (size_t u = 0; u < trial.units.size(); ++u) {
      const OracleUnit unit = trial.Oracle(u);
      const PhantomTerms terms = TermsOf(unit);
      const double materialised =
          SquaredLength(std::span(unit.gradient).subspan(items.offset, items.size()));
      const double identity = terms.input + terms.output + 2 * terms.common;
      ASSERT_NEAR(identity, materialised, 1e-12 * (terms.input + terms.output + 1e-30));
      const double norm = std::sqrt(double{sum.norms.squared[u]});
      ASSERT_NEAR(norm, std::sqrt(materialised), 1e-5 * norm);
      const auto differs = [&](double squared) {
        return std::abs(std::sqrt(std::max(0.0, squared)) - norm) > 1e-3 * norm;
      };
      cross_seen |= differs(terms.input + terms.output);
      square_seen |= differs(terms.input_as_printed + terms.output + 2 * terms.common);
    }
  }
  EXPECT_TRUE(cross_seen) << "a norm without its cross term would pass";
  EXPECT_TRUE(square_seen) << "the paper's square would pass";
}

TEST_F(SequenceOnCpu, PaddingThatCountedWouldBeSeen) {
  SequenceOptions options = Kind(0);
  options.length = 5;
  const Trial trial(options, 3);
  const PaddedUnit unit{.id = 1, .crops = {{{kNoItem, 3, kNoItem, 3, 5}, {kNoItem, 3, 1, 5, 2}}}};
  SequenceOracle::Context right, wrong;
  wrong.padding_counts = true;
  const OracleUnit with = SequenceOracle(trial.layout, trial.parameters, wrong).Run(unit);
  const OracleUnit without = SequenceOracle(trial.layout, trial.parameters, right).Run(unit);
  EXPECT_GT(std::abs(std::sqrt(SquaredLength(with.gradient)) -
                     std::sqrt(SquaredLength(without.gradient))),
            1e-3);
  // Padding shifts nothing but positions: those that are there are the window's own.
  const UnitRows rows = unit.ToRows(options);
  EXPECT_EQ(rows.position, (std::vector<uint32_t>{1, 3, 4}));
  EXPECT_EQ(rows.crop_end, std::vector<uint32_t>{3});
}

// Each number of each unit is rounded once: the sum is whole steps, no further from the exact one
// than half a step a unit, and the same however many workers there are.
TEST(SequenceModel, SumsOnAGridAreExactAndDoNotDependOnWorkers) {
  WorkerPool one({1, false}), three({3, false});
  const auto single = ops::MakeCpuBackend(one), triple = ops::MakeCpuBackend(three);
  for (const uint64_t kind : {0, 1, 4, 8, 12, 100, 101, 104, 108, 112}) {
    SequenceOptions options = Kind(kind % 100);
    if (kind >= 100) options.precision = ops::Precision::kBf16;
    const Trial trial(options, kind + 1);
    for (const double step : {0x1p-6, 0x1p-30}) {
      const SequenceSum plain = trial.Sum(testing::FlatClip(0.3), *single);
      const SequenceSum sum = trial.Sum(testing::FlatClip(0.3, step), *single);
      ASSERT_TRUE(sum.values.empty());
      ASSERT_EQ(sum.norms.squared, plain.norms.squared);
      const auto units = static_cast<double>(trial.units.size());
      for (size_t i = 0; i < sum.steps.size(); ++i)
        ASSERT_NEAR(static_cast<double>(sum.steps[i]) * step, plain.values[i],
                    units * step / 2 + 1e-6);
      EXPECT_EQ(sum.steps, trial.Sum(testing::FlatClip(0.3, step), *triple).steps);
      for (size_t u = 0; u < trial.units.size(); ++u) {
        const double numbers = std::pow(2 * sum.norms.rounding[u] / step, 2);
        EXPECT_LE(numbers, static_cast<double>(trial.layout.size()) * 1.001);
      }
    }
  }
}

// A unit's change of the integers is no longer than its clip and the stated rounding, on a grid so
// coarse that rounding matters; without that allowance it would be.
TEST_F(SequenceOnCpu, RoundingLengthensAUnitByNoMoreThanIsTold) {
  constexpr double kClip = 0.3, kStep = 0x1p-5;
  bool lengthened = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Trial trial(Kind(seed), seed);
    for (const PaddedUnit& unit : std::vector<PaddedUnit>(trial.units)) {
      trial.units = {unit};
      const SequenceSum sum = trial.Sum(testing::FlatClip(kClip, kStep), *backend_);
      double squared = 0, scaled = 0;
      for (const int64_t s : sum.steps) squared += std::pow(static_cast<double>(s) * kStep, 2);
      for (const float s : sum.norms.squared) scaled += double{s};
      scaled = std::min(kClip, std::sqrt(scaled));
      ASSERT_LE(std::sqrt(squared), scaled + sum.norms.rounding[0] + 1e-6);
      lengthened |= std::sqrt(squared) > scaled * 1.01;
    }
  }
  EXPECT_TRUE(lengthened) << "the grid is too fine for this test to fail";
}

// One unit out of the step changes nothing of what the others bring: their dropout is their own.
// Coins that depend on the place in the batch fail the same comparison.
TEST_F(SequenceOnCpu, AUnitThatIsTakenOutMovesNoOtherUnit) {
  SequenceOptions options = Kind(2);
  options.dropout = 0.4f;
  const Trial trial(options, 5);
  const auto steps = [&](size_t first, size_t last, bool by_place) {
    const std::vector<PaddedUnit> units(trial.units.begin() + static_cast<ptrdiff_t>(first),
                                        trial.units.begin() + static_cast<ptrdiff_t>(last));
    SequenceModel model(options, *backend_);
    SequenceSum sum;
    EXPECT_TRUE(model.ClippedSum(trial.parameters, PaddedUnits(options, units, by_place),
                                 trial.step, testing::FlatClip(0.3, 0x1p-30), &sum));
    return sum.steps;
  };
  const size_t count = trial.units.size();
  for (const bool by_place : {false, true}) {
    const auto all = steps(0, count, by_place), first = steps(0, 1, by_place),
               rest = steps(1, count, by_place);
    int64_t brought = 0, moved = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      brought += std::abs(first[i]);
      moved += std::abs(all[i] - rest[i] - first[i]);
    }
    EXPECT_GT(brought, 0);
    EXPECT_EQ(moved > 0, by_place);
  }
}

TEST_F(SequenceOnCpu, ANormThatIsNotFiniteAddsNothing) {
  Trial trial(Kind(0), 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // A position that only crops of full length read.
  trial.options.length = 4;
  trial.layout = SequenceLayout(trial.options);
  trial.parameters = testing::RandomParameters(trial.layout, 1);
  trial.units = {{.id = 1, .crops = {{{1, 2}, {2, 3}}}},
                 {.id = 2, .crops = {{{1, 2, 3, 4}, {2, 3, 4, 5}}}}};
  const Trial clean = trial;
  trial.parameters[trial.layout.positions().offset] = nan;
  const SequenceSum sum = trial.Sum(testing::FlatClip(0.3), *backend_);
  for (const float v : sum.values) ASSERT_TRUE(std::isfinite(v));
  Trial first = clean;
  first.units.resize(1);
  EXPECT_EQ(sum.values, first.Sum(testing::FlatClip(0.3), *backend_).values);
}

TEST_F(SequenceOnCpu, AnEmptyStepIsASumOfNothing) {
  Trial trial(Kind(0), 1);
  trial.units.clear();
  const SequenceSum sum = trial.Sum(testing::FlatClip(0.3, 0x1p-30), *backend_);
  EXPECT_EQ(sum.steps, std::vector<int64_t>(trial.layout.size()));
  EXPECT_TRUE(sum.loss.empty());
}

// With all other items as negatives the sampled softmax is the whole one.
TEST_F(SequenceOnCpu, SampledSoftmaxOfAllOtherItemsComesCloseToTheWhole) {
  SequenceOptions options = Kind(0);
  options.item_bias = false;
  options.catalogue = 300;
  Trial whole(options, 3);
  const SequenceSum all = whole.Sum(testing::NoClip(), *backend_);
  options.negatives = 299;
  const Trial sampled(options, 3);
  const SequenceSum some = sampled.Sum(testing::NoClip(), *backend_);
  double difference = 0, length = 0;
  for (size_t i = 0; i < all.values.size(); ++i) {
    difference += std::pow(all.values[i] - some.values[i], 2);
    length += std::pow(all.values[i], 2);
  }
  EXPECT_LT(difference, 1e-3 * length);
}

TEST_F(SequenceOnCpu, ScoresAreTheLogitsBehindTheLastItem) {
  for (const uint64_t kind : {0, 1, 9}) {
    SequenceOptions options = Kind(kind);
    options.dropout = 0;
    options.negatives = 0;
    options.length = 3;
    Trial trial(options, kind + 1);
    const Known known(options.catalogue, kind);
    // One with, two without.
    if (kind == 1) {
      trial.known = known.rows;
      trial.prior = known.prior.get();
    }
    SequenceModel model(options, *backend_, trial.prior);
    const std::vector<uint32_t> history = {5, 1, 4, 4}, window = {1, 4, 4};
    std::vector<float> scores;
    const std::span<const uint32_t> histories[] = {history, {}};
    ASSERT_TRUE(model.Score(trial.parameters, trial.step.noise, histories,
                            [&](size_t i, std::span<float> s, size_t) {
                              if (i == 0) scores.assign(s.begin(), s.end());
                              EXPECT_EQ(s.size(), options.catalogue);
                            }));
    // The oracle's loss of each target is its score less the same normaliser.
    std::vector<double> losses;
    for (uint32_t target = 0; target < options.catalogue; ++target) {
      SequenceOptions last = options;
      last.label_smoothing = 0;
      last.mask_seen = false;
      const SequenceLayout layout(last);
      SequenceOracle::Context context = trial.ContextOf({});
      const PaddedUnit unit{.id = 0, .crops = {{window, {kNoItem, kNoItem, target}}}};
      losses.push_back(SequenceOracle(layout, trial.parameters, context).Run(unit).loss);
    }
    for (uint32_t i = 1; i < options.catalogue; ++i)
      EXPECT_NEAR(scores[i] - scores[0], losses[0] - losses[i], 1e-4);
  }
}

}  // namespace
}  // namespace tacit::model
