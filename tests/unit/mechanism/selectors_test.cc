// Every way to choose rows, with the clip and the noise that follow: against naive updates over the
// whole id space.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "distribution.h"
#include "mechanism/choice/choice.h"
#include "mechanism/private_step.h"
#include "naive.h"
#include "support/fixed_noise.h"
#include "support/statistics.h"

namespace tacit::mechanism {
namespace {

constexpr NaiveOptions kNoise{.sigma_gradient = 0.5, .clip_gradient = 0.8, .expected_batch = 9};
constexpr size_t kDraws = 100000;

std::unique_ptr<Mechanism> StepOf(const RowSpace& space, std::unique_ptr<RowSelector> selector) {
  return MakePrivateStep(space, std::move(selector),
                         MakeFlatClipper(kNoise.clip_gradient, kNoise.sigma_gradient),
                         {.sigma_gradient = kNoise.sigma_gradient,
                          .expected_batch = kNoise.expected_batch,
                          .sampling_rate = 0.25});
}

std::unique_ptr<Vocabulary> PublicVocabulary(const RowSpace& space, std::vector<uint64_t> rows) {
  return MakeVocabulary(space,
                        {.source = VocabularyOptions::Source::kPublic, .rows = std::move(rows)});
}

class Selectors : public ::testing::Test {
 protected:
  Moments Fast(std::unique_ptr<RowSelector> selector) const {
    const auto mechanism = StepOf(space_, std::move(selector));
    auto noise = noise::FixedNoise(43);
    StepRunner runner(space_, units_);
    return Measure(space_, kDraws,
                   [&]() -> const Update& { return runner.Run(*mechanism, noise); });
  }
  // Faults are measured with a fifth of the draws.
  Moments Naive(const KeepRule& rule, Fault fault) const {
    NaiveStep naive(space_, units_, kNoise, rule, fault, 1);
    return Measure(space_, fault == Fault::kNone ? kDraws : kDraws / 5,
                   [&]() -> const Update& { return naive.Step(); });
  }
  // The rule may be at fault itself.
  using MakeRule = std::function<KeepRule(Fault)>;
  void ExpectTheNaiveOne(std::unique_ptr<RowSelector> selector, const MakeRule& rule,
                         std::vector<Fault> faults) const {
    const Moments fast = Fast(std::move(selector));
    EXPECT_LT(Moments::Distance(fast, Naive(rule(Fault::kNone), Fault::kNone)), kLimit);
    faults.insert(faults.end(),
                  {Fault::kClipBeforeMask, Fault::kRealisedBatch, Fault::kNoiseInsideClip,
                   Fault::kUntouchedWithoutNoise, Fault::kUntouchedNotWritten});
    for (Fault fault : faults)
      EXPECT_GT(Moments::Distance(fast, Naive(rule(fault), fault)), 1.5 * kLimit)
          << "fault " << static_cast<int>(fault);
  }

  RowSpace space_ = TwoTables(40);
  StepUnits units_ = SomeUnits(space_);
};

TEST_F(Selectors, ExponentialRowsAreThoseOfGumbelsOverTheWholeSpace) {
  const ExponentialOptions options{.rows = 6, .epsilon = 1.5, .clip = 0.9};
  const model::Activations activations = ActivationsOf(units_);
  const std::vector<double> scores = ScoresOf(units_, activations, options.clip);
  std::vector<double> score(space_.rows());
  std::vector<uint8_t> touched(space_.rows());
  for (size_t i = 0; i < scores.size(); ++i) {
    score[activations.rows[i]] = scores[i];
    touched[activations.rows[i]] = 1;
  }
  const auto rule = [&](Fault fault) -> KeepRule {
    return [&, fault](Random& random, std::vector<uint8_t>* kept) {
      std::vector<std::pair<double, uint64_t>> noisy;
      for (uint64_t row = 0; row < space_.rows(); ++row) {
        const bool races = touched[row] || fault != Fault::kUntouchedOutOfRace;
        const double gumbel = races ? random.Gumbel() : -1e9;
        noisy.emplace_back(score[row] + options.clip / options.epsilon * gumbel, row);
      }
      std::sort(noisy.rbegin(), noisy.rend());
      std::fill(kept->begin(), kept->end(), 0);
      for (size_t i = 0; i < options.rows; ++i) (*kept)[noisy[i].second] = 1;
    };
  };
  ExpectTheNaiveOne(MakeExponentialRows(space_, options), rule, {Fault::kUntouchedOutOfRace});
}

TEST_F(Selectors, VocabularyRowsAreWrittenEveryTime) {
  // Some of them are touched, some are not; most touched rows are outside.
  const std::vector<uint64_t> inside = {0, 1, 2, 5, 8, 21, 39};
  const auto rule = [&](Fault) -> KeepRule {
    return [&](Random&, std::vector<uint8_t>* kept) {
      for (uint64_t row : inside) (*kept)[row] = 1;
    };
  };
  ExpectTheNaiveOne(MakeVocabularyRows(PublicVocabulary(space_, inside)), rule, {});
}

TEST_F(Selectors, AllRowsAreEveryRow) {
  const auto rule = [](Fault) -> KeepRule {
    return [](Random&, std::vector<uint8_t>* kept) { std::fill(kept->begin(), kept->end(), 1); };
  };
  const Moments fast = Fast(MakeAllRows());
  EXPECT_LT(Moments::Distance(fast, Naive(rule(Fault::kNone), Fault::kNone)), kLimit);
  for (Fault fault : {Fault::kRealisedBatch, Fault::kNoiseInsideClip, Fault::kUntouchedWithoutNoise,
                      Fault::kUntouchedNotWritten})
    EXPECT_GT(Moments::Distance(fast, Naive(rule(fault), fault)), 1.5 * kLimit);
}

TEST_F(Selectors, AThresholdOfInfinityKeepsNoRow) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto mechanism =
      StepOf(space_, MakeThresholdRows(space_, {.sigma = 1, .clip = 1, .threshold = kInfinity}));
  auto noise = noise::FixedNoise(43);
  StepRunner runner(space_, units_);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(runner.Run(*mechanism, noise).rows.empty());
  EXPECT_EQ(mechanism->ExpectedExtraRows(), 0);
  const auto all =
      StepOf(space_, MakeThresholdRows(space_, {.sigma = 1, .clip = 1, .threshold = -kInfinity}));
  EXPECT_EQ(runner.Run(*all, noise).rows.size(), space_.rows());
}

// A row of a vocabulary that is far from the whole space: nothing outside is ever written, and
// inside as many pass as promised.
TEST_F(Selectors, AVocabularyIsTheWholeSpaceOfItsThreshold) {
  RowSpace space;
  space.AddTable("t", 3'000'000'000, 1);
  std::vector<uint64_t> inside;
  for (uint64_t i = 0; i < 100000; ++i) inside.push_back(i * 29999);
  const auto mechanism =
      StepOf(space, MakeThresholdRows(space, {.sigma = 1, .clip = 1, .threshold = 3},
                                      PublicVocabulary(space, inside)));
  const double expected = 1e5 * testing::NormalCdf(-3);
  EXPECT_NEAR(mechanism->ExpectedExtraRows(), expected, 1e-3 * expected);
  auto noise = noise::FixedNoise(43);
  model::RowSelection selection;
  double count = 0;
  for (int i = 0; i < 100; ++i) {
    mechanism->Select({.activations = {}}, noise, &selection);
    count += static_cast<double>(selection.extra.size());
    for (uint64_t row : selection.extra) ASSERT_EQ(row % 29999, 0u);
  }
  EXPECT_EQ(testing::CheckDeviation("rows", count, 100 * expected, std::sqrt(100 * expected)), "");
}

TEST_F(Selectors, ChargeWhatTheyAsk) {
  using privacy::MechanismKind;
  const auto charge = [&](std::unique_ptr<RowSelector> selector) {
    return StepOf(space_, std::move(selector))->charge();
  };
  for (const auto& [kind, got] :
       {std::pair(MechanismKind::kDpSgd, charge(MakeAllRows())),
        std::pair(MechanismKind::kFest,
                  charge(MakeVocabularyRows(PublicVocabulary(space_, {1, 2}))))}) {
    EXPECT_EQ(got, (privacy::Charge{.mechanism = kind,
                                    .noise_multiplier = 0.5,
                                    .sigma_gradient = 0.5,
                                    .clip_gradient = 0.8,
                                    .sampling_rate = 0.25}));
  }
  const ThresholdOptions threshold{.sigma = 2, .clip = 3, .threshold = 1};
  const auto plus = charge(MakeThresholdRows(space_, threshold, PublicVocabulary(space_, {1})));
  EXPECT_EQ(plus.mechanism, MechanismKind::kAdaFestPlus);
  EXPECT_NEAR(plus.noise_multiplier, 1 / std::sqrt(4 + 0.25), 1e-15);
  EXPECT_EQ(plus.sigma_selection, 2);
  EXPECT_EQ(plus.clip_selection, 3);
  EXPECT_EQ(plus.zcdp_rho, 0);
  const auto exponential =
      charge(MakeExponentialRows(space_, {.rows = 10, .epsilon = 0.2, .clip = 3}));
  EXPECT_EQ(exponential.mechanism, MechanismKind::kExponential);
  EXPECT_EQ(exponential.noise_multiplier, 0.5);
  EXPECT_EQ(exponential.sigma_selection, 0);
  EXPECT_EQ(exponential.clip_selection, 3);
  EXPECT_DOUBLE_EQ(exponential.zcdp_rho, 10 * 0.04 / 8);
}

// Three queries on one batch are one Gaussian; the clip of the charge is that it began with,
// with any value by now and after any load.
TEST_F(Selectors, AnAdaptiveClipIsChargedAndItsStateKept) {
  const QuantileOptions quantile{
      .initial_clip = 0.8, .quantile = 0.5, .sigma_query = 4, .expected_batch = 9};
  const auto make = [&] {
    return MakePrivateStep(
        space_, MakeThresholdRows(space_, {.sigma = 2, .clip = 1, .threshold = 1}),
        MakeQuantileClipper(quantile, 0.5), {.sigma_gradient = 0.5, .expected_batch = 9});
  };
  const auto mechanism = make();
  const privacy::Charge charge = mechanism->charge();
  EXPECT_NEAR(charge.noise_multiplier, 1 / std::sqrt(4 + 0.25 + 1 / 16.0), 1e-15);
  EXPECT_EQ(charge.sigma_clip, 4);
  auto noise = noise::FixedNoise(43);
  StepRunner runner(space_, units_);
  const uint64_t version = mechanism->state_version();
  for (int i = 0; i < 30; ++i) runner.Run(*mechanism, noise);
  EXPECT_GT(mechanism->state_version(), version);
  EXPECT_EQ(mechanism->charge(), charge);
  const std::string state = mechanism->SaveState();
  const auto restored = make();
  ASSERT_TRUE(restored->LoadState(state));
  EXPECT_EQ(restored->SaveState(), state);
  EXPECT_EQ(restored->charge(), charge);
  EXPECT_EQ(restored->scale_rule().grid_step(), mechanism->scale_rule().grid_step());
  // No state of another mechanism, and none that is cut short or drawn out.
  EXPECT_FALSE(StepOf(space_, MakeAllRows())->LoadState(state));
  EXPECT_FALSE(MakeAdaFest(space_, {.sigma_selection = 2,
                                    .sigma_gradient = 0.5,
                                    .clip_gradient = 0.8,
                                    .threshold = 1,
                                    .expected_batch = 9})
                   ->LoadState(state));
  for (size_t size = 1; size < state.size(); ++size)
    EXPECT_FALSE(make()->LoadState(std::string_view(state).substr(0, size))) << size;
  EXPECT_FALSE(make()->LoadState(state + "x"));
}

}  // namespace
}  // namespace tacit::mechanism
