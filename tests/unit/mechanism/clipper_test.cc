#include "mechanism/clipper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "mechanism/private_step.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
namespace tacit::mechanism {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// Noise so large that the grid is coarse: rounding shows.
constexpr double kCoarse = 0x1p31;

std::vector<float> ScalesOf(const Clipper& clipper, model::GroupNorms norms) {
  if (norms.rounding.empty()) norms.rounding.assign(norms.units, 0);
  std::vector<float> scales(norms.squared.size(), -1);
  clipper.rule().Scales(norms, scales);
  return scales;
}

model::GroupNorms OneGroup(std::vector<double> norms) {
  model::GroupNorms out{.groups = 1, .units = norms.size(), .squared = {}};
  for (double norm : norms) out.squared.push_back(static_cast<float>(norm * norm));
  return out;
}

// Notes what it is asked to make noisy, and adds a number of its own choice.
class NotedNoise final : public noise::SilentNoise {
 public:
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    stddev_ = stddev;
    noted_.assign(values.begin(), values.end());
    for (int64_t& value : values) value += static_cast<int64_t>(std::llround(add_ * stddev));
  }
  void AddGaussian(double, std::span<float>) override { ADD_FAILURE() << "noise off the grid"; }
  void FillGaussian(std::span<double>) override { ADD_FAILURE() << "noise off the grid"; }

  double stddev_ = 0, add_ = 0;
  std::vector<int64_t> noted_;
};

TEST(FlatClipper, ScalesAllGroupsOfAUnitByItsJointNorm) {
  // Units of norm 5 (3 and 4), 0.5 (in the second group), and 0.
  const auto scales = ScalesOf(*MakeFlatClipper(1.5, 1),
                               {.groups = 2, .units = 3, .squared = {9, 0, 0, 16, 0.25f, 0}});
  EXPECT_NEAR(scales[0], 0.3, 1e-6);
  EXPECT_EQ(scales[3], scales[0]);
  EXPECT_EQ(scales[1], 1);
  EXPECT_EQ(scales[4], 1);
  EXPECT_EQ(scales[2], 1);
}

TEST(AutomaticClipper, BringsEveryUnitToAboutTheClip) {
  const auto scales =
      ScalesOf(*MakeAutomaticClipper(1.5, 1), {.groups = 2, .units = 2, .squared = {9, 0, 16, 0}});
  EXPECT_NEAR(scales[0], 1.5 / 5.01, 1e-6);
  EXPECT_EQ(scales[2], scales[0]);
  EXPECT_NEAR(scales[1], 150, 1e-4);
}

TEST(PerLayerClipper, ClipsEachGroupToItsShareOfTheSquare) {
  const model::GroupNorms norms{
      .groups = 3, .units = 2, .squared = {100, 0.01f, 4, 0.01f, 0.01f, 100}};
  const auto scales = ScalesOf(*MakePerLayerClipper(2, {2, 1, 1}, 1), norms);
  EXPECT_NEAR(scales[0], std::sqrt(2) / 10, 1e-5);
  EXPECT_NEAR(scales[2], 1.0 / 2, 1e-5);
  EXPECT_EQ(scales[4], 1);
  EXPECT_EQ(scales[1], 1);
  EXPECT_EQ(scales[3], 1);
  EXPECT_NEAR(scales[5], 1.0 / 10, 1e-5);
  const auto equal = ScalesOf(*MakePerLayerClipper(2, {}, 1), norms);
  EXPECT_NEAR(equal[0], 2 / std::sqrt(3) / 10, 1e-5);
  EXPECT_NEAR(equal[5], 2 / std::sqrt(3) / 10, 1e-5);
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<Clipper>(double clip, double sigma)> make;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class EveryClipper : public ::testing::TestWithParam<Case> {};

// A unit of four groups as it reaches the sum: scaled in f32 as the model does it, its rows (the
// last group) rounded to the nearest step, and a whole step more on each dense number, which is
// what rounding the sum of all units can add.
double LengthInSum(const Clipper& clipper, const std::vector<std::vector<float>>& groups,
                   bool with_allowance) {
  const double step = clipper.grid().step;
  model::GroupNorms norms{.groups = groups.size(), .units = 1, .squared = {}};
  size_t dense = 0;
  for (const auto& group : groups) {
    double squared = 0;
    for (double x : group) squared += x * x;
    norms.squared.push_back(static_cast<float>(squared));
    if (&group != &groups.back()) dense += group.size();
  }
  const double rounding = step * (std::sqrt(static_cast<double>(groups.back().size())) / 2 +
                                  std::sqrt(static_cast<double>(dense)));
  norms.rounding = {with_allowance ? static_cast<float>(rounding * (1 + 0x1p-20)) : 0.0f};
  const auto scales = ScalesOf(clipper, norms);
  double length = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    for (float x : groups[g]) {
      if (scales[g] == 0) continue;
      const double scaled = static_cast<double>(scales[g]) * x;
      const double moved = g + 1 == groups.size() ? std::nearbyint(scaled / step) * step
                                                  : scaled + std::copysign(step, scaled);
      length += moved * moved;
    }
  return std::sqrt(length);
}

TEST_P(EveryClipper, NoUnitIsLongerThanTheBoundAfterScalingAndRounding) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> exponent(-18, 17);
  int longer_without = 0, near = 0;
  for (int unit = 0; unit < 4000; ++unit) {
    const double clip = std::pow(10, exponent(random) / 3);
    const auto clipper = GetParam().make(clip, unit % 2 ? kCoarse : 1.0);
    std::vector<std::vector<float>> groups(4);
    for (auto& group : groups) {
      const double size = unit % 4 < 2 ? clip : std::pow(10, exponent(random));
      group.resize(1 + random() % 12);
      for (float& x : group) x = static_cast<float>(size * normal(random));
    }
    const double length = LengthInSum(*clipper, groups, true);
    ASSERT_LE(length, clipper->bound()) << "unit " << unit << ", clip " << clip;
    ASSERT_EQ(clipper->bound(), clip);
    near += length > 0.9 * clip;
    longer_without += LengthInSum(*clipper, groups, false) > clip;
  }
  EXPECT_GT(longer_without, 300) << "without the allowance rounding must show";
  EXPECT_GT(near, 100) << "the bound must be used";
}

// Rounding to nearest could double scales that lie among the smallest floats.
TEST_P(EveryClipper, TheSmallestScalesAreRoundedDown) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-28, -24);
  int below = 0;
  for (int i = 0; i < 500; ++i) {
    const double clip = std::pow(10, exponent(random)), norm = 1.5e19;
    const auto clipper = GetParam().make(clip, 1.0);
    const float scale = ScalesOf(*clipper, OneGroup({norm})).front();
    ASSERT_LE(scale * norm, clip);
    below += scale > 0 && scale < std::numeric_limits<float>::min();
  }
  EXPECT_GT(below, 100);
}

TEST_P(EveryClipper, AUnitWhoseNormIsNoNumberIsDroppedWhole) {
  const auto clipper = GetParam().make(10, 1);
  for (float bad : {kNan, kInfinity, -kInfinity, -4.0f}) {
    const auto scales =
        ScalesOf(*clipper, {.groups = 2, .units = 2, .squared = {1, 1, bad, 1}, .rounding = {}});
    EXPECT_EQ(scales[0], 0) << bad;
    EXPECT_EQ(scales[2], 0) << bad;
    EXPECT_GT(scales[1], 0);
    EXPECT_GT(scales[3], 0);
  }
}

TEST_P(EveryClipper, AUnitOfMoreRoundingThanRoomAddsNothing) {
  const auto clipper = GetParam().make(1, 1);
  const auto scales =
      ScalesOf(*clipper, {.groups = 2, .units = 1, .squared = {1, 1}, .rounding = {1.5f}});
  EXPECT_EQ(scales, (std::vector<float>{0, 0}));
}

TEST_P(EveryClipper, TheGridIsThatOfTheBoundAndTheNoise) {
  const auto clipper = GetParam().make(0.3, 2);
  EXPECT_EQ(clipper->grid().step, MakeGrid(0.3, 0.6).step);
  EXPECT_EQ(clipper->grid().stddev * clipper->grid().step, 0.6);
  EXPECT_EQ(clipper->rule().grid_step(), clipper->grid().step);
  EXPECT_TRUE(clipper->rule().needs_norms());
}

QuantileOptions Quantile(double initial_clip) {
  return {.initial_clip = initial_clip,
          .quantile = 0.3,
          .learning_rate = 0.2,
          .sigma_query = 10,
          .expected_batch = 100,
          .clip_min = 1e-30,
          .clip_max = 1e30};
}

INSTANTIATE_TEST_SUITE_P(Mechanism, EveryClipper,
                         ::testing::Values(Case{"flat", MakeFlatClipper},
                                           Case{"automatic", MakeAutomaticClipper},
                                           Case{"per_layer",
                                                [](double clip, double sigma) {
                                                  return MakePerLayerClipper(clip, {}, sigma);
                                                }},
                                           Case{"quantile",
                                                [](double clip, double sigma) {
                                                  return MakeQuantileClipper(Quantile(clip), sigma);
                                                }}),
                         [](const auto& info) { return info.param.name; });

TEST(PerLayerClipper, NoUnitIsLongerWithSharesOfItsOwn) {
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal;
  for (int unit = 0; unit < 1000; ++unit) {
    std::vector<double> shares(4);
    for (double& share : shares) share = std::exp(3 * normal(random));
    const auto clipper = MakePerLayerClipper(0.7, shares, unit % 2 ? kCoarse : 1.0);
    std::vector<std::vector<float>> groups(4);
    for (auto& group : groups) {
      group.resize(1 + random() % 12);
      for (float& x : group) x = static_cast<float>(normal(random));
    }
    ASSERT_LE(LengthInSum(*clipper, groups, true), 0.7);
  }
}

// The noise is calibrated to this: for any unit that joins, of any norm, the number that is made
// noisy changes by the same amount, and the noise is sigma_query times it.
TEST(QuantileClipper, OneUnitChangesTheCountByExactlyTheUnitOfItsNoise) {
  const std::vector<double> others = {0.1, 0.5, 3, 7, 1.0, 0.2};
  NotedNoise noise;
  const auto noted = [&](std::vector<double> norms, float extra) {
    model::GroupNorms group = OneGroup(std::move(norms));
    if (extra != 0) {
      group.squared.push_back(extra);
      ++group.units;
    }
    MakeQuantileClipper(Quantile(1), 1)->Adapt(group, noise);
    EXPECT_EQ(noise.noted_.size(), 1u);
    return noise.noted_.front();
  };
  const int64_t without = noted(others, 0);
  for (float extra : {1e-30f, 0.25f, 0.99f, 1.5f, 1e30f, kInfinity, kNan}) {
    const auto change = static_cast<double>(std::abs(noted(others, extra) - without));
    EXPECT_NEAR(noise.stddev_ / change, 10, 1e-9) << extra;
  }
}

TEST(QuantileClipper, MovesByTheShareOfUnitsWithinTheBoundForLaterStepsOnly) {
  const auto clipper = MakeQuantileClipper(Quantile(1), 1);
  EXPECT_EQ(clipper->sigma_query(), 10);
  // 80 of 100 within the bound: the share is 0.8.
  std::vector<double> norms(100, 0.5);
  std::fill_n(norms.begin(), 20, 2.0);
  NotedNoise noise;
  EXPECT_EQ(ScalesOf(*clipper, OneGroup({2}))[0],
            ScalesOf(*MakeFlatClipper(1, 1), OneGroup({2}))[0]);
  EXPECT_EQ(clipper->bound(), 1);
  clipper->Adapt(OneGroup(norms), noise);
  const double expected = std::exp(-0.2 * (0.8 - 0.3));
  EXPECT_NEAR(clipper->bound(), expected, 1e-12);
  EXPECT_EQ(clipper->grid().step, MakeGrid(clipper->bound(), clipper->bound()).step);
  EXPECT_NEAR(ScalesOf(*clipper, OneGroup({2}))[0], expected / 2, 1e-6);
  // Noise of one standard deviation moves the share by sigma_query / (2 B).
  noise.add_ = 1;
  clipper->Adapt(OneGroup(norms), noise);
  EXPECT_NEAR(std::log(clipper->bound() / expected), -0.2 * (0.8 + 10.0 / 200 - 0.3), 1e-6);
}

// The divisor is public: half the units, or none, look like a share nearer to a half, never like a
// realised batch.
TEST(QuantileClipper, DividesByThePublicBatch) {
  NotedNoise noise;
  const auto moved = [&](size_t units) {
    const auto clipper = MakeQuantileClipper(Quantile(1), 1);
    clipper->Adapt(OneGroup(std::vector<double>(units, 0.5)), noise);
    return std::log(clipper->bound()) / -0.2 + 0.3;
  };
  EXPECT_NEAR(moved(0), 0.5, 1e-9);
  EXPECT_NEAR(moved(50), 0.75, 1e-9);
  EXPECT_NEAR(moved(100), 1, 1e-9);
}

TEST(QuantileClipper, FindsTheQuantileWithNoise) {
  const auto noise = std::make_unique<noise::FixedNoise>(1);
  std::mt19937_64 random(4);
  std::lognormal_distribution<double> norm(1, 0.5);
  QuantileOptions options = Quantile(50);
  options.learning_rate = 0.1;
  const auto clipper = MakeQuantileClipper(options, 1);
  double sum = 0;
  constexpr int kSteps = 1200, kSettled = 400;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> norms(100);
    for (double& n : norms) n = norm(random);
    clipper->Adapt(OneGroup(norms), *noise);
    if (step >= kSettled) sum += std::log(clipper->bound());
  }
  // The 0.3 quantile of the normal is -0.5244. The mean of 800 steps scatters by about 0.006.
  EXPECT_NEAR(sum / (kSteps - kSettled), 1 - 0.5 * 0.5244, 0.04);
}

TEST(QuantileClipper, StaysInItsRange) {
  NotedNoise noise;
  QuantileOptions options = Quantile(1);
  options.clip_min = 0.5;
  options.clip_max = 2;
  const auto clipper = MakeQuantileClipper(options, 1);
  noise.add_ = 1e6;
  clipper->Adapt(OneGroup({}), noise);
  EXPECT_EQ(clipper->bound(), 0.5);
  noise.add_ = -1e6;
  clipper->Adapt(OneGroup({}), noise);
  EXPECT_EQ(clipper->bound(), 2);
}

TEST(QuantileClipper, GoesOnFromItsState) {
  NotedNoise noise;
  const auto first = MakeQuantileClipper(Quantile(1), 1);
  const uint64_t before = first->state_version();
  first->Adapt(OneGroup({0.5, 0.7}), noise);
  EXPECT_GT(first->state_version(), before);
  const auto second = MakeQuantileClipper(Quantile(1), 1);
  ASSERT_TRUE(second->LoadState(first->SaveState()));
  EXPECT_EQ(second->bound(), first->bound());
  EXPECT_EQ(second->grid().step, first->grid().step);
  EXPECT_EQ(second->SaveState(), first->SaveState());
}

TEST(QuantileClipper, RefusesBytesThatAreNoState) {
  const auto clipper = MakeQuantileClipper(Quantile(1), 1);
  const std::string good = clipper->SaveState();
  std::vector<std::string> bad = {good.substr(1), good + "x", std::string(good.size(), '\xff'),
                                  std::string(good.size(), '\0')};
  for (double clip : {0.0, -1.0, HUGE_VAL, std::nan("")}) {
    bad.push_back(good);
    std::copy_n(reinterpret_cast<const char*>(&clip), sizeof clip, bad.back().end() - sizeof clip);
  }
  for (const std::string& bytes : bad) {
    const Status status = clipper->LoadState(bytes);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCorruption);
  }
  // The learner's clip was fixed until now.
  EXPECT_TRUE(clipper->LoadState(""));
  EXPECT_EQ(clipper->bound(), 1);
}

TEST(QuantileClipper, AStateBeyondTheConfiguredRangeIsBroughtIntoIt) {
  QuantileOptions narrow = Quantile(1);
  narrow.clip_max = 1;
  const auto wide = MakeQuantileClipper(Quantile(7), 1), clipper = MakeQuantileClipper(narrow, 1);
  ASSERT_TRUE(clipper->LoadState(wide->SaveState()));
  EXPECT_EQ(clipper->bound(), 1);
}

TEST(FixedClippers, HaveNothingToKeep) {
  NotedNoise noise;
  const auto clipper = MakeFlatClipper(1, 1);
  clipper->Adapt(OneGroup({5}), noise);
  EXPECT_EQ(clipper->bound(), 1);
  EXPECT_EQ(clipper->sigma_query(), 0);
  EXPECT_EQ(clipper->state_version(), 0u);
  EXPECT_TRUE(clipper->SaveState().empty());
  EXPECT_TRUE(noise.noted_.empty());
}

// The clip has moved on by then; the noise of the update has not.
TEST(PrivateStep, TellsTheNoiseOfTheUpdateThatWasFinalized) {
  RowSpace space;
  space.AddTable("t", 8, 3);
  const auto step = MakePrivateStep(space, MakeAllRows(), MakeQuantileClipper(Quantile(2), 3),
                                    {.sigma_gradient = 3, .expected_batch = 100});
  NotedNoise noise;
  model::StepGradient sum;
  EXPECT_EQ(step->scale_rule().grid_step(), MakeGrid(2, 6).step);
  step->Finalize(noise, OneGroup(std::vector<double>(100, 0.5)), &sum);
  EXPECT_NEAR(step->update_stddev(), 3 * 2 / 100.0, 1e-12);
  EXPECT_LT(step->scale_rule().grid_step(), MakeGrid(2, 6).step);
  step->Finalize(noise, OneGroup({}), &sum);
  EXPECT_NEAR(step->update_stddev(), 3 * 2 / 100.0 * std::exp(-0.2 * 0.7), 1e-12);
}

TEST(NonPrivate, ScalesNothingAndHasNoNoise) {
  const auto step = MakeNonPrivate(4);
  EXPECT_FALSE(step->scale_rule().needs_norms());
  std::vector<float> scales(2);
  step->scale_rule().Scales(OneGroup({100, 0}), scales);
  EXPECT_EQ(scales, (std::vector<float>{1, 1}));
  EXPECT_EQ(step->update_stddev(), 0);
}

TEST(ClipperDeath, WhatIsNoClipIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)MakeFlatClipper(0, 1), "clip");
  EXPECT_DEATH((void)MakePerLayerClipper(1, {1, 0}, 1), "share");
  EXPECT_DEATH((void)ScalesOf(*MakePerLayerClipper(1, {1, 1, 1}, 1), OneGroup({1})), "share");
  QuantileOptions options = Quantile(1);
  options.sigma_query = 0;
  EXPECT_DEATH((void)MakeQuantileClipper(options, 1), "noise");
}

}  // namespace
}  // namespace tacit::mechanism
