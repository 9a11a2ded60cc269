#include "mechanism/mechanism.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "mechanism/sigma_split.h"
#include "noise/stream_noise.h"
#include "step.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "support/statistics.h"

namespace tacit::mechanism {
namespace {

AdaFestOptions Options() {
  return {.sigma_selection = 5,
          .sigma_gradient = 1,
          .clip_selection = 1,
          .clip_gradient = 2,
          .threshold = 15,
          .expected_batch = 100};
}

RowSpace SpaceOf(uint64_t rows) {
  RowSpace space;
  space.AddTable("t", rows, 1);
  return space;
}

TEST(SplitSigma, CostsWhatOneGaussianDoes) {
  for (double sigma : {0.3, 1.0, 7.5})
    for (double ratio : {0.1, 1.0, 5.0, 100.0}) {
      const SigmaSplit split = SplitSigma(sigma, ratio);
      EXPECT_NEAR(split.selection / split.gradient, ratio, 1e-12 * ratio);
      EXPECT_NEAR(1 / std::pow(split.selection, 2) + 1 / std::pow(split.gradient, 2),
                  1 / (sigma * sigma), 1e-12 / (sigma * sigma));
      EXPECT_NEAR(CombineSigma({split.selection, split.gradient}), sigma, 1e-14 * sigma);
    }
}

TEST(AdaFest, ChargesBothQueriesAsOneGaussian) {
  const RowSpace space = SpaceOf(10);
  const privacy::Charge charge = MakeAdaFest(space, Options())->charge();
  EXPECT_EQ(charge.mechanism, privacy::MechanismKind::kAdaFest);
  EXPECT_NEAR(charge.noise_multiplier, 1 / std::sqrt(1 / 25.0 + 1), 1e-15);
  EXPECT_EQ(charge.sigma_selection, 5);
  EXPECT_EQ(charge.sigma_gradient, 1);
  EXPECT_EQ(charge.clip_selection, 1);
  EXPECT_EQ(charge.clip_gradient, 2);
}

// Keeps what it should have added noise to, and how much.
class Recorder final : public noise::SilentNoise {
 public:
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    asked_stddev = stddev;
    seen.assign(values.begin(), values.end());
  }
  void AddGaussian(double, std::span<float>) override { ADD_FAILURE() << "noise off the grid"; }

  double asked_stddev = 0;
  std::vector<int64_t> seen;
};

// Neighbours differ in one unit: wherever it stands in the batch, the sums before noise differ by
// its clipped vector and not by a rounding more.
TEST(AdaFest, OneUnitMovesTheContributionsByAtMostTheClip) {
  const RowSpace space = SpaceOf(100);
  for (const double clip : {1.0, 0.3, 4.0}) {
    AdaFestOptions options = Options();
    options.clip_selection = clip;
    options.expected_batch = 2048;
    const auto mechanism = MakeAdaFest(space, options);
    Recorder noise;
    const auto sums = [&](const StepUnits& units) {
      model::RowSelection selection;
      mechanism->Select({.activations = ActivationsOf(units)}, noise, &selection);
      return noise.seen;
    };
    // Every unit has rows 0 to 9 and some of the others, so that row 0 has a long sum.
    StepUnits units(2048);
    for (size_t u = 0; u < units.size(); ++u)
      for (uint64_t row = 0; row < 10 + u * u % 90; ++row) units[u].rows[row] = {1};
    const std::vector<int64_t> all = sums(units);
    // In steps of the grid; a power of two, so that nothing here is rounded.
    const double clip_steps = noise.asked_stddev / options.sigma_selection;
    EXPECT_EQ(std::exp2(std::round(std::log2(clip / clip_steps))) * clip_steps, clip);
    for (const size_t gone : {0u, 700u, 2047u}) {
      StepUnits neighbour = units;
      neighbour[gone].rows.clear();
      const std::vector<int64_t> rest = sums(neighbour);
      uint64_t squared = 0;
      for (size_t row = 0; row < rest.size(); ++row)
        squared += static_cast<uint64_t>((all[row] - rest[row]) * (all[row] - rest[row]));
      const auto most = static_cast<uint64_t>(std::floor(clip_steps));
      EXPECT_LE(squared, most * most) << clip << " without unit " << gone;
      const double whole = std::min(clip, std::sqrt(static_cast<double>(units[gone].rows.size())));
      EXPECT_GT(std::sqrt(static_cast<double>(squared)), 0.99 * whole / clip * clip_steps);
    }
  }
}

// Rows no unit touched, over a space far too large to walk: as many as c * p0 says, ascending, none
// of them activated, evenly spread.
TEST(AdaFest, ExtraRowsComeAsOftenAsPromised) {
  const RowSpace space = SpaceOf(3'000'000'000);
  AdaFestOptions options = Options();
  options.threshold = 25;  // 5 standard deviations: p0 = 2.87e-7
  const auto mechanism = MakeAdaFest(space, options);
  // The noise is a normal and a dither that makes it wider by some 10^-5: 2^26 steps of 2^-30.
  double p0 = 0;
  for (double place = -0.4995; place < 0.5; place += 0.001)
    p0 += testing::NormalCdf(-5 + place * 0x1p-4 / 5) / 1000;
  EXPECT_NEAR(mechanism->ExpectedExtraRows(), 3e9 * p0, 1e-3);
  EXPECT_NEAR(mechanism->ExpectedExtraRows(), 3e9 * testing::NormalCdf(-5), 0.2);
  auto noise = noise::FixedNoise(7);
  model::RowSelection selection;
  double count = 0, places = 0;
  for (int i = 0; i < 500; ++i) {
    mechanism->Select({.activations = {}}, noise, &selection);
    EXPECT_TRUE(std::is_sorted(selection.extra.begin(), selection.extra.end()));
    count += static_cast<double>(selection.extra.size());
    for (uint64_t row : selection.extra) {
      ASSERT_LT(row, space.rows());
      places += static_cast<double>(row) / 3e9;
    }
  }
  const double expected = 500 * mechanism->ExpectedExtraRows();
  EXPECT_EQ(testing::CheckDeviation("rows", count, expected, std::sqrt(expected)), "");
  EXPECT_EQ(testing::CheckDeviation("place", places / count, 0.5, std::sqrt(1 / 12.0 / count)), "");
}

TEST(AdaFest, ExtraRowsAreNeverActivatedOnes) {
  const RowSpace space = SpaceOf(50);
  AdaFestOptions options = Options();
  options.threshold = 0;
  const auto mechanism = MakeAdaFest(space, options);
  StepUnits units(1);
  units[0].dense.resize(kDenseSize);
  for (uint64_t row : {0u, 7u, 8u, 49u}) units[0].rows[row] = {1};
  const auto activations = ActivationsOf(units);
  auto noise = noise::FixedNoise(7);
  model::RowSelection selection;
  for (int i = 0; i < 1000; ++i) {
    mechanism->Select({.activations = activations}, noise, &selection);
    ASSERT_EQ(selection.kept.size(), 4u);
    EXPECT_EQ(
        std::adjacent_find(selection.extra.begin(), selection.extra.end(), std::greater_equal<>()),
        selection.extra.end());
    for (uint64_t row : activations.rows)
      EXPECT_FALSE(std::binary_search(selection.extra.begin(), selection.extra.end(), row));
  }
}

TEST(AdaFest, HoldsWhereEveryRowOrNoRowPasses) {
  const RowSpace space = SpaceOf(33);
  auto noise = noise::FixedNoise(7);
  model::RowSelection selection;
  AdaFestOptions options = Options();
  options.threshold = -1e6;
  MakeAdaFest(space, options)->Select({.activations = {}}, noise, &selection);
  ASSERT_EQ(selection.extra.size(), 33u);
  for (uint64_t row = 0; row < 33; ++row) EXPECT_EQ(selection.extra[row], row);
  options.threshold = 1e6;
  MakeAdaFest(space, options)->Select({.activations = {}}, noise, &selection);
  EXPECT_TRUE(selection.extra.empty());
  EXPECT_EQ(MakeAdaFest(space, options)->ExpectedExtraRows(), 0);
}

TEST(AdaFest, AnEmptyBatchIsNoisedAndDividedByThePublicBatch) {
  const RowSpace space = SpaceOf(10);
  const auto mechanism = MakeAdaFest(space, Options());
  auto noise = noise::FixedNoise(7);
  std::vector<double> z;
  for (int i = 0; i < 100000; ++i) {
    const Update update = RunStep(*mechanism, space, {}, noise);
    // The noise's standard deviation is C2 sigma2 / B = 0.02.
    for (double value : update.dense) z.push_back(value / 0.02);
  }
  EXPECT_EQ(testing::CheckMoments(z), "");
}

TEST(NonPrivate, KeepsEveryRowAndOnlyDivides) {
  const RowSpace space = SpaceOf(10);
  const auto mechanism = MakeNonPrivate(4);
  auto noise = noise::FixedNoise(7);
  StepUnits units(2);
  for (UnitGradient& unit : units) {
    unit.dense = {100, -200, 0};
    unit.rows[3] = {50};
  }
  units[1].rows[9] = {-8};
  EXPECT_FALSE(mechanism->scale_rule().needs_norms());
  const Update update = RunStep(*mechanism, space, units, noise);
  EXPECT_EQ(update.dense, (std::vector<double>{50, -100, 0}));
  EXPECT_EQ(update.rows, (std::vector<uint64_t>{3, 9}));
  EXPECT_EQ(update.values, (std::vector<double>{25, -2}));
  EXPECT_TRUE(std::isinf(mechanism->charge().MuSquared()));
  EXPECT_EQ(mechanism->charge().mechanism, privacy::MechanismKind::kNonPrivate);
  EXPECT_EQ(mechanism->ExpectedExtraRows(), 0);
}

}  // namespace
}  // namespace tacit::mechanism
