#include "support/sequence_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "privacy/gaussian.h"
#include "privacy/pld.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "support/statistics.h"

namespace tacit::train {
namespace {

constexpr uint32_t kCatalogue = 12;

// Users who go round a circle of items, each from his own place.
model::Histories Circles(size_t users, size_t length) {
  model::Histories histories;
  histories.catalogue = kCatalogue;
  for (size_t u = 0; u < users; ++u) {
    for (size_t i = 0; i < length; ++i)
      histories.items.push_back(static_cast<uint32_t>((5 * u + i) % kCatalogue));
    histories.end.push_back(histories.items.size());
  }
  return histories;
}

SequenceTrainingOptions Options(double batch) {
  SequenceTrainingOptions options;
  options.model.catalogue = kCatalogue;
  options.model.length = 6;
  options.model.width = 8;
  options.model.blocks = 1;
  options.expected_batch = batch;
  options.schedule.steps = 10;
  options.optimizer.kind = OptimizerNamed("sgd");
  options.optimizer.learning_rate = 0.5f;
  options.privacy.sigma = 1;
  return options;
}

class SequenceTrainerTest : public ::testing::Test {
 protected:
  SequenceTrainer Make(const SequenceTrainingOptions& options, const model::Histories& histories) {
    EXPECT_TRUE(CheckOptions(options, histories.units()));
    return {options, histories, *backend_, std::make_unique<noise::FixedNoise>(1),
            std::make_unique<noise::FixedNoise>(2)};
  }
  SequenceTrainer MakeSilent(const SequenceTrainingOptions& options,
                             const model::Histories& histories) {
    return {options, histories, *backend_, std::make_unique<noise::SilentNoise>(),
            std::make_unique<noise::SilentNoise>()};
  }
  static std::vector<float> Copy(std::span<const float> x) { return {x.begin(), x.end()}; }

  WorkerPool workers_{WorkerPool::Options{2, false}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
};

// min(1, C / |g|), by hand.
class Flat final : public model::ScaleRule {
 public:
  explicit Flat(double clip) : clip_(clip) {}
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override {
    const double norm = std::sqrt(std::accumulate(norms.squared.begin(), norms.squared.end(), 0.0));
    std::fill(scales.begin(), scales.end(), static_cast<float>(std::min(1.0, clip_ / norm)));
  }

 private:
  const double clip_;
};

TEST_F(SequenceTrainerTest, AStepWithoutNoiseIsTheClippedSumOverThePublicBatch) {
  const model::Histories histories = Circles(9, 8);
  SequenceTrainingOptions options = Options(9);
  options.privacy.clip_norm = 0.1;
  SequenceTrainer trainer = MakeSilent(options, histories);
  const std::vector<float> before = Copy(trainer.Weights());

  model::SequenceModel model(options.model, *backend_);
  const std::vector<uint64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  model::SequenceSum sum;
  ASSERT_TRUE(model.ClippedSum(before, model::HistoryUnits(options.model, histories, all), {},
                               Flat(0.1), &sum));
  SequenceStepReport report;
  ASSERT_TRUE(trainer.Step(&report));
  EXPECT_EQ(report.units, 9u);
  EXPECT_EQ(report.units_clipped, 9u);
  EXPECT_NEAR(report.loss, std::log(kCatalogue), 0.2);
  for (size_t i = 0; i < before.size(); ++i)
    ASSERT_NEAR(trainer.Weights()[i], before[i] - 0.5 * sum.values[i] / 9, 1e-6);
}

// sigma C / B on every number, for any units in the batch; a noise that is off by 2 % fails
// the same test.
TEST_F(SequenceTrainerTest, NoiseIsThatOfItsMultiplier) {
  model::Histories nobody;
  nobody.catalogue = kCatalogue;
  nobody.end.assign(50, 0);
  SequenceTrainingOptions options = Options(20);
  options.model.catalogue = nobody.catalogue = 20000;
  options.privacy.sigma = 1.7;
  options.privacy.clip_norm = 0.3;
  SequenceTrainer trainer = Make(options, nobody);
  const std::vector<float> before = Copy(trainer.Weights());
  SequenceStepReport report;
  ASSERT_TRUE(trainer.Step(&report));
  EXPECT_DOUBLE_EQ(trainer.update_stddev(), 1.7 * 0.3 / 20);
  std::vector<double> z;
  for (size_t i = 0; i < before.size(); ++i)
    z.push_back((double{before[i]} - trainer.Weights()[i]) / 0.5 / (1.7 * 0.3 / 20));
  EXPECT_EQ(testing::CheckMoments(z), "");
  for (double& value : z) value *= 0.97;
  EXPECT_NE(testing::CheckMoments(z), "");
}

// Noise over many steps, group by group: every number moves, by what it is charged for.
class GroupNoise {
 public:
  GroupNoise(std::span<const model::ParameterGroup> groups, double stddev)
      : groups_(groups), stddev_(stddev), z_(groups.size()) {}

  void Add(std::span<const float> before, std::span<const float> after) {
    if (moved_.empty()) moved_.resize(before.size());
    for (size_t g = 0; g < groups_.size(); ++g)
      for (size_t i = groups_[g].offset; i < groups_[g].offset + groups_[g].size; ++i) {
        z_[g].push_back((double{before[i]} - after[i]) / stddev_);
        if (before[i] != after[i]) moved_[i] = true;
      }
  }
  std::string Check() const {
    std::string wrong;
    size_t numbers = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      numbers += groups_[g].size;
      const std::string here = testing::CheckMoments(z_[g]);
      if (!here.empty()) wrong += groups_[g].name + ": " + here;
    }
    if (numbers != moved_.size()) wrong += "numbers of no group; ";
    const auto still = std::ranges::count(moved_, false);
    if (still > 0) wrong += std::to_string(still) + " numbers stand still; ";
    return wrong;
  }

 private:
  const std::span<const model::ParameterGroup> groups_;
  const double stddev_;
  std::vector<std::vector<double>> z_;
  std::vector<bool> moved_;
};

// The fault: what follows the embeddings gets none.
class OnEmbeddingsOnly final : public noise::SilentNoise {
 public:
  explicit OnEmbeddingsOnly(size_t numbers) : numbers_(numbers) {}
  void ForParts(size_t n, const Part& part) override {
    left_ = numbers_;
    part(0, n, *this);
  }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    const size_t n = std::min(left_, values.size());
    noise_->AddGridGaussian(stddev, values.first(n));
    left_ -= n;
  }

 private:
  const std::unique_ptr<noise::NoiseSource> noise_ = std::make_unique<noise::FixedNoise>(3);
  const size_t numbers_;
  size_t left_ = 0;
};

TEST_F(SequenceTrainerTest, EveryGroupHasTheNoiseThatIsCharged) {
  model::Histories nobody;
  nobody.catalogue = kCatalogue;
  nobody.end.assign(50, 0);
  SequenceTrainingOptions options = Options(20);
  options.schedule.steps = 2000;
  options.privacy.sigma = 0.8;
  options.model.item_bias = true;
  options.model.tied = false;
  const auto check = [&](SequenceTrainer trainer) {
    GroupNoise noise(trainer.model().layout().groups(),
                     0.5 * trainer.charge().sigma_gradient * trainer.charge().clip_gradient / 20);
    SequenceStepReport report;
    while (!trainer.done()) {
      const std::vector<float> before = Copy(trainer.Weights());
      EXPECT_TRUE(trainer.Step(&report));
      noise.Add(before, trainer.Weights());
    }
    return noise.Check();
  };
  EXPECT_EQ(check(Make(options, nobody)), "");
  const size_t embeddings = size_t{kCatalogue} * options.model.width;
  const std::string wrong =
      check({options, nobody, *backend_, std::make_unique<OnEmbeddingsOnly>(embeddings),
             std::make_unique<noise::FixedNoise>(4)});
  EXPECT_NE(wrong.find("stand still"), std::string::npos) << wrong;
}

// Units come as often as is charged for; a rate that is off by a tenth is found out.
TEST_F(SequenceTrainerTest, UnitsAreTakenAsOftenAsIsCharged) {
  model::Histories nobody;
  nobody.catalogue = kCatalogue;
  nobody.end.assign(500, 0);
  SequenceTrainingOptions options = Options(60);
  options.schedule.steps = 600;
  SequenceTrainer trainer = Make(options, nobody);
  uint64_t taken = 0;
  SequenceStepReport report;
  while (!trainer.done()) {
    ASSERT_TRUE(trainer.Step(&report));
    taken += report.units;
  }
  const double rate = trainer.charge().sampling_rate;
  EXPECT_DOUBLE_EQ(rate, 60.0 / 500);
  const uint64_t coins = 500 * trainer.steps_taken();
  EXPECT_EQ(testing::CheckBinomial("taken", taken, coins, rate), "");
  EXPECT_NE(testing::CheckBinomial("taken", taken, coins, rate * 0.9), "");
  EXPECT_NE(testing::CheckBinomial("taken", taken, coins, rate * 1.1), "");
}

// A later release of item shares has the effect that an earlier one would have had.
TEST_F(SequenceTrainerTest, ItemSharesMayComeLater) {
  SequenceTrainingOptions options = Options(20);
  options.model.re_attention.kappa = 1;
  const std::vector<float> share = {0.5f, 0.1f, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  SequenceStepper later(options, {}, *backend_, std::make_unique<noise::FixedNoise>(5));
  const auto variance = [](const SequenceStepper& stepper) {
    return Copy(stepper.parameter_noise().item_variance);
  };
  options.privacy.item_share = share;
  const SequenceStepper at_once(options, {}, *backend_, std::make_unique<noise::FixedNoise>(6));
  EXPECT_NE(variance(later), variance(at_once));
  later.SetItemShare(share);
  EXPECT_EQ(variance(later), variance(at_once));
  EXPECT_NEAR(variance(later)[0] / variance(later)[3], 4, 1e-5);
}

TEST_F(SequenceTrainerTest, ItemsThatAreNotOfTheCatalogueAreRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  model::Histories histories = Circles(3, 4);
  EXPECT_TRUE(model::CheckHistories(histories));
  histories.items[5] = kCatalogue;
  const Status checked = model::CheckHistories(histories);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "histories: unit 1: item 12 of a catalogue of 12");
  EXPECT_DEATH(Make(Options(3), histories), "of the catalogue");
}

// A unit that is taken out moves the sum before noise by its clip at most, in whole steps of the
// grid; with a clip twice as long it moves it further.
TEST_F(SequenceTrainerTest, AUnitMovesTheSumByItsClipAtMost) {
  const model::Histories histories = Circles(6, 8);
  for (const auto clip : {SequenceGuard::Clip::kFlat, SequenceGuard::Clip::kNormalised}) {
    SequenceTrainingOptions options = Options(6);
    options.privacy.clip_norm = 0.05;
    options.privacy.clip = clip;
    const auto moved = [&](const SequenceTrainingOptions& o) {
      SequenceTrainer whole = MakeSilent(o, histories);
      model::Histories without = histories;  // the first user's records are nulls
      without.items.erase(without.items.begin(), without.items.begin() + 8);
      for (uint64_t& end : without.end) end -= 8;
      SequenceTrainer less = MakeSilent(o, without);
      SequenceStepReport report;
      EXPECT_TRUE(whole.Step(&report));
      EXPECT_TRUE(less.Step(&report));
      double squared = 0;
      for (size_t i = 0; i < whole.Weights().size(); ++i)
        squared += std::pow((double{whole.Weights()[i]} - less.Weights()[i]) / 0.5 * 6, 2);
      return std::sqrt(squared);
    };
    EXPECT_LE(moved(options), 0.05 * (1 + 1e-4));
    EXPECT_GT(moved(options), 0.04);
    options.privacy.clip_norm = 0.1;
    EXPECT_GT(moved(options), 0.05 * 1.5);
  }
}

TEST_F(SequenceTrainerTest, LearnsTheCircleWithAndWithoutPrivacy) {
  const model::Histories histories = Circles(400, 9);
  for (const bool is_private : {false, true}) {
    SequenceTrainingOptions options = Options(400);
    options.privacy.on = is_private;
    options.privacy.clip = SequenceGuard::Clip::kNormalised;
    options.schedule = {.steps = 60, .warm_up = 0.2, .decays = true};
    options.optimizer.kind = OptimizerNamed("adam");
    options.optimizer.learning_rate = 0.03f;
    options.optimizer.average_decay = 0.5;
    SequenceTrainer trainer = Make(options, histories);
    SequenceStepReport report;
    while (!trainer.done()) ASSERT_TRUE(trainer.Step(&report));
    EXPECT_LT(report.loss, 1.0) << is_private;
    EXPECT_EQ(trainer.charge().Bounded(), is_private);
    const std::vector<uint32_t> seen = {3, 4, 5};
    const std::span<const uint32_t> asked[] = {seen};
    ASSERT_TRUE(trainer.Score(asked, [&](size_t, std::span<float> scores, size_t) {
      EXPECT_EQ(std::max_element(scores.begin(), scores.end()) - scores.begin(), 6);
    }));
  }
}

// Paper 000's model: noise in the parameters corrects attention, less where an item is frequent.
TEST_F(SequenceTrainerTest, ReAttentionGoesByTheNoiseAndTheItemsShares) {
  const model::Histories histories = Circles(20, 8);
  SequenceTrainingOptions options = Options(20);
  options.model.re_attention.kappa = 1;
  options.privacy.sigma = 2;
  options.privacy.item_share.assign(kCatalogue, 0.5f);
  options.privacy.item_share[3] = 0;
  SequenceTrainer trainer = Make(options, histories);
  const model::ParameterNoise noise = trainer.parameter_noise();
  EXPECT_NEAR(noise.weight_variance, std::pow(2.0 / 20, 2), 1e-8);
  EXPECT_NEAR(noise.item_variance[0], std::pow(2.0 / 20 / 0.5, 2), 1e-7);
  EXPECT_NEAR(noise.item_variance[3], std::pow(2.0 / 20 / 1e-3, 2), 1);
  SequenceStepReport report;
  ASSERT_TRUE(trainer.Step(&report));
  options.privacy.on = false;
  EXPECT_FALSE(Make(options, histories).parameter_noise().on());
}

TEST_F(SequenceTrainerTest, WeightsAreAveraged) {
  const model::Histories histories = Circles(8, 8);
  SequenceTrainingOptions options = Options(8), averaged = Options(8);
  averaged.optimizer.average_decay = 0.7;
  SequenceTrainer plain = MakeSilent(options, histories), mean = MakeSilent(averaged, histories);
  std::vector<double> sum(plain.Weights().size());
  double weights = 0;
  SequenceStepReport report;
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(plain.Step(&report));
    ASSERT_TRUE(mean.Step(&report));
    weights = 0.7 * weights + 1;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = 0.7 * sum[i] + plain.Weights()[i];
  }
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(mean.Weights()[i], sum[i] / weights, 1e-6);
}

TEST_F(SequenceTrainerTest, WhatIsMissingIsRefused) {
  const auto refused = [](const std::function<void(SequenceTrainingOptions*)>& change,
                          const char* name) {
    SequenceTrainingOptions options = Options(5);
    change(&options);
    const Status status = CheckOptions(options, 10);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
  };
  EXPECT_TRUE(CheckOptions(Options(5), 10));
  refused([](auto* o) { o->privacy.sigma = 0; }, "sigma");
  refused([](auto* o) { o->privacy.clip_norm = 0; }, "clip_norm");
  refused([](auto* o) { o->expected_batch = 11; }, "expected_batch");
  for (const double scale : {-1.0, 1e-300, 1e300, std::nan("")}) {
    refused([&](auto* o) { o->privacy.clip_norm = scale; }, "clip_norm");
    refused([&](auto* o) { o->expected_batch = scale; }, "expected_batch");
  }
  for (const float value : {-0.5f, 1.0f, 2.0f, std::nanf("")}) {
    refused([&](auto* o) { o->optimizer.average_decay = value; }, "average_decay");
    refused([&](auto* o) { o->optimizer.beta1 = value; }, "beta1");
    refused([&](auto* o) { o->optimizer.beta2 = value; }, "beta2");
  }
  for (const float rate : {-1.0f, 1e30f, std::numeric_limits<float>::infinity()})
    refused([&](auto* o) { o->optimizer.learning_rate = rate; }, "learning_rate");
  for (const float floor : {0.0f, -1.0f, std::numeric_limits<float>::infinity()})
    refused([&](auto* o) { o->optimizer.variance_floor = floor; }, "variance_floor");
  refused([](auto* o) { o->schedule.steps = 0; }, "steps");
  refused([](auto* o) { o->schedule.warm_up = 2; }, "warm_up");
  refused([](auto* o) { o->privacy.item_share = {1}; }, "item_share");
  refused([](auto* o) { o->privacy.on = false, o->optimizer.kind = OptimizerNamed("adam-bc"); },
          "adam-bc");
  refused([](auto* o) { o->model.width = 0; }, "width");
}

TEST(RateSchedule, RisesThenFalls) {
  const RateSchedule schedule{.steps = 10, .warm_up = 0.4, .decays = true};
  const std::vector<double> want = {0.25,    0.5,     0.75,    1,       6 / 7.0,
                                    5 / 7.0, 4 / 7.0, 3 / 7.0, 2 / 7.0, 1 / 7.0};
  for (size_t step = 0; step < want.size(); ++step)
    EXPECT_NEAR(schedule.Factor(step), want[step], 1e-12) << step;
  EXPECT_EQ((RateSchedule{.steps = 5}.Factor(4)), 1);
  EXPECT_EQ((RateSchedule{.steps = 5, .decays = true}.Factor(0)), 1);
  EXPECT_NEAR((RateSchedule{.steps = 5, .decays = true}.Factor(4)), 0.2, 1e-12);
}

// Each unit by its own coin: how often it comes, and how batch sizes scatter. Batches of a fixed
// size do not scatter, and fail the same test.
TEST(UnitSampler, TakesEachUnitByACoinOfItsOwn) {
  constexpr uint64_t kUnits = 40;
  constexpr double kRate = 0.3;
  constexpr int kSteps = 4000;
  const auto check = [&](const std::function<std::vector<uint64_t>()>& sample) {
    std::vector<uint64_t> taken(kUnits), sizes(kUnits + 1);
    for (int step = 0; step < kSteps; ++step) {
      const auto units = sample();
      ++sizes[units.size()];
      for (const uint64_t unit : units) ++taken[unit];
    }
    std::string wrong;
    for (const uint64_t count : taken)
      wrong += testing::CheckBinomial("taken", count, kSteps, kRate);
    std::vector<double> p;
    for (uint64_t k = 0; k <= kUnits; ++k)
      p.push_back(std::exp(std::lgamma(kUnits + 1.0) - std::lgamma(k + 1.0) -
                           std::lgamma(kUnits - k + 1.0) +
                           static_cast<double>(k) * std::log(kRate) +
                           static_cast<double>(kUnits - k) * std::log1p(-kRate)));
    return wrong + testing::CheckCounts(sizes, p, kSteps);
  };
  UnitSampler sampler(kUnits, kRate, std::make_unique<noise::FixedNoise>(7));
  EXPECT_EQ(check([&] {
              const auto units = sampler.Sample();
              return std::vector<uint64_t>(units.begin(), units.end());
            }),
            "");
  std::mt19937_64 random(1);
  std::vector<uint64_t> all(kUnits);
  std::iota(all.begin(), all.end(), uint64_t{0});
  EXPECT_NE(check([&] {
              std::shuffle(all.begin(), all.end(), random);
              return std::vector<uint64_t>(all.begin(), all.begin() + 12);
            }),
            "");
  UnitSampler everyone(kUnits, 1, std::make_unique<noise::FixedNoise>(8));
  EXPECT_EQ(everyone.Sample().size(), kUnits);
}

}  // namespace
}  // namespace tacit::train
