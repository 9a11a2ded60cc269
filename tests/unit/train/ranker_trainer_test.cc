#include "train/ranking/ranker_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "model/ranking/ranker.h"
#include "noise/noise.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "support/single_release.h"
#include "unit/model/transitions/world.h"

namespace tacit::train {
namespace {

using model::Histories;
using model::ranking::CandidateSource;
using model::ranking::kRankerParameters;
using model::transitions::PublicItems;
using model::transitions::SomeHistories;
using model::transitions::SomeTexts;
using model::transitions::With;

constexpr uint32_t kItems = 60;
constexpr size_t kUnits = 80;

// Adds nothing, and writes down what it was asked to add.
class Asked final : public noise::SilentNoise {
 public:
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    stddevs.push_back(stddev);
    numbers += values.size();
  }
  void Rekey() override { ++keys; }
  std::vector<double> stddevs;
  size_t numbers = 0, keys = 0;
};

class RankerTrainerTest : public testing::Test {
 protected:
  RankerTrainerTest() {
    const auto noise = std::make_unique<noise::FixedNoise>(1);
    auto release = ReleaseTransitions(histories_, catalogue_, options_, 2, *noise, workers_);
    EXPECT_TRUE(release) << release.error().message;
    source_.emplace(release->estimate(), catalogue_, options_, workers_);
  }
  static RankerTraining Training() {
    return {.seed = 3, .steps = 20, .sigma = 4, .candidates = 30, .expected_units = kUnits};
  }
  // After this many steps none of the parameters is 0: every part of a gradient is there.
  static std::vector<float> Somewhere() {
    std::mt19937_64 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> parameters = model::ranking::InitialRanker(3);
    for (float& w : parameters) w += 0.3f * normal(random);
    return parameters;
  }
  std::vector<int64_t> Sums(const Histories& histories, WorkerPool& workers,
                            double* step = nullptr) {
    Asked noise;
    RankerTrainer trainer(Training(), histories, *source_, noise, workers);
    trainer.SetInitial(Somewhere());
    trainer.Step();
    if (step != nullptr) *step = trainer.grid_step();
    return {trainer.sums().begin(), trainer.sums().end()};
  }

  const model::transitions::Options options_;
  const PublicItems catalogue_{SomeTexts(kItems, 3)};
  const Histories histories_ = SomeHistories(kItems, kUnits, 40, 1);
  WorkerPool workers_{{.workers = 2}};
  std::optional<CandidateSource> source_;
};

double Norm(const std::vector<int64_t>& one, const std::vector<int64_t>& other, double step) {
  double squares = 0;
  for (size_t i = 0; i < one.size(); ++i)
    squares += std::pow(static_cast<double>(one[i] - other[i]), 2);
  return std::sqrt(squares) * step;
}

// By what it is asked about, with any history: each unit is taken out in turn.
TEST_F(RankerTrainerTest, AUnitMovesASumByOneAtMost) {
  double step = 0;
  const auto all = Sums(histories_, workers_, &step);
  size_t asked = 0;
  for (size_t unit = 0; unit < kUnits; ++unit) {
    const double moved = Norm(all, Sums(With(histories_, unit, {}), workers_), step);
    EXPECT_LE(moved, 1);
    asked += moved > 0;
    // Brought to norm 1, all but the shortest.
    if (moved > 0) {
      EXPECT_GT(moved, 0.8);
    }
  }
  EXPECT_GT(asked, kUnits / 2) << "and most have questions";
}

// A norm that looks at one part alone would let a unit by who is long in the other.
TEST_F(RankerTrainerTest, EveryPartOfAGradientCountsInItsNorm) {
  double step = 0;
  const auto all = Sums(histories_, workers_, &step);
  const auto part = [&](const std::vector<int64_t>& sums, size_t begin, size_t end) {
    return std::vector<int64_t>(sums.begin() + static_cast<ptrdiff_t>(begin),
                                sums.begin() + static_cast<ptrdiff_t>(end));
  };
  using model::ranking::kFeatures, model::ranking::kHidden;
  constexpr size_t kEnds[] = {0, kFeatures, kFeatures + kFeatures * kHidden,
                              kFeatures + kFeatures * kHidden + kHidden, kRankerParameters};
  std::array<double, 4> most = {};
  for (size_t unit = 0; unit < kUnits; ++unit) {
    const auto without = Sums(With(histories_, unit, {}), workers_);
    for (size_t p = 0; p < most.size(); ++p)
      most[p] = std::max(most[p], Norm(part(all, kEnds[p], kEnds[p + 1]),
                                       part(without, kEnds[p], kEnds[p + 1]), step));
  }
  for (const double of_a_part : most) EXPECT_GT(of_a_part, 0.08);
}

// The fault: a unit that comes twice. And units whose gradients are not bounded.
TEST_F(RankerTrainerTest, WhatIsNotOneUnitsVectorOfNormOneIsSeen) {
  Histories twice = histories_;
  size_t unit = 0;
  while (histories_.Of(unit).size() < 20) ++unit;
  const auto history = histories_.Of(unit);
  twice.items.insert(twice.items.end(), history.begin(), history.end());
  twice.end.push_back(twice.items.size());
  double step = 0;
  const auto with = Sums(twice, workers_, &step);
  std::vector<uint32_t> nothing;
  const auto without = Sums(With(histories_, unit, nothing), workers_);
  EXPECT_GT(Norm(with, without, step), 1.5);

  model::ranking::RankerPass pass;
  model::ranking::Candidates candidates;
  double most = 0, least = 1e9;
  for (size_t unit = 0; unit < kUnits; ++unit) {
    const auto history = histories_.Of(unit);
    if (history.size() < 2) continue;
    source_->Find(history.first(history.size() - 1), 30, &candidates);
    const size_t answer = candidates.PlaceOf(history.back());
    if (answer == candidates.items.size()) continue;
    std::vector<float> gradient(kRankerParameters);
    pass.AddGradient(model::ranking::InitialRanker(3), candidates.rows, answer, 0.3, gradient);
    double squares = 0;
    for (const float g : gradient) squares += double{g} * g;
    most = std::max(most, std::sqrt(squares));
    least = std::min(least, std::sqrt(squares));
  }
  EXPECT_GT(most, 1);
  EXPECT_LT(least, 0.8);
}

TEST_F(RankerTrainerTest, SumsDoNotDependOnWhoAddsThem) {
  WorkerPool one({.workers = 1}), three({.workers = 3});
  EXPECT_EQ(Sums(histories_, one), Sums(histories_, three));
}

// The noise is the same with any units, even without one.
TEST_F(RankerTrainerTest, EveryNumberOfEveryStepGetsTheNoiseThatIsCharged) {
  Histories nobody;
  nobody.catalogue = kItems;
  for (const Histories* histories : {&histories_, static_cast<const Histories*>(&nobody)}) {
    Asked noise;
    RankerTrainer trainer(Training(), *histories, *source_, noise, workers_);
    EXPECT_DOUBLE_EQ(trainer.charge().MuSquared(), 1 / 16.0);
    EXPECT_EQ(trainer.charge().sampling_rate, 1);
    while (!trainer.done()) trainer.Step();
    EXPECT_EQ(noise.numbers, 20 * kRankerParameters);
    EXPECT_EQ(noise.keys, 20u) << "a cloned machine draws no noise twice";
    for (const double stddev : noise.stddevs)
      EXPECT_DOUBLE_EQ(stddev * trainer.grid_step(), 4) << "sigma times a norm of 1";
  }
  // Real noise moves what no unit contributed to.
  const auto noise = std::make_unique<noise::FixedNoise>(2);
  RankerTrainer trainer(Training(), nobody, *source_, *noise, workers_);
  const std::vector<float> before(trainer.parameters().begin(), trainer.parameters().end());
  trainer.Step();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NE(trainer.parameters()[i], before[i]);
}

// Without noise: what is asked for comes further to the front.
TEST_F(RankerTrainerTest, WhatIsLearntIsOfUse) {
  RankerTraining training = Training();
  training.sigma = 0;
  training.steps = 60;
  Asked noise;
  RankerTrainer trainer(training, histories_, *source_, noise, workers_);
  EXPECT_FALSE(trainer.charge().Bounded());
  trainer.Step();
  const double first = trainer.report().loss;
  while (!trainer.done()) trainer.Step();
  EXPECT_LT(trainer.report().loss, 0.9 * first);
  EXPECT_EQ(noise.numbers, 0u);
  const auto average = trainer.Average();
  EXPECT_NE(average, std::vector<float>(trainer.parameters().begin(), trainer.parameters().end()));
}

TEST_F(RankerTrainerTest, WhatMakesNoSenseIsNamed) {
  const auto why = [](auto change) {
    RankerTraining training = Training();
    change(training);
    const Status status = CheckOptions(training);
    return status ? std::string() : status.error().message;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(why([](auto&) {}), "");
  EXPECT_NE(why([](auto& t) { t.steps = 0; }).find("steps"), std::string::npos);
  EXPECT_NE(why([&](auto& t) { t.sigma = nan; }).find("sigma"), std::string::npos);
  EXPECT_NE(why([](auto& t) { t.candidates = 0; }).find("candidates"), std::string::npos);
  EXPECT_NE(why([](auto& t) { t.last_items = 0; }).find("last_items"), std::string::npos);
  EXPECT_NE(why([](auto& t) { t.focus = 0; }).find("focus"), std::string::npos);
  EXPECT_NE(why([](auto& t) { t.expected_units = 0; }).find("expected_units"), std::string::npos);
  EXPECT_NE(why([](auto& t) { t.learning_rate = 1e300; }).find("learning_rate"), std::string::npos);
  EXPECT_NE(why([](auto& t) { t.candidates = 1 << 20; }).find("candidates"), std::string::npos);
  EXPECT_NE(why([](auto& t) { t.last_items = 1 << 20; }).find("last_items"), std::string::npos);
  EXPECT_NE(why([](auto& t) { t.learning_rate = -1; }).find("learning_rate"), std::string::npos);
  EXPECT_NE(why([](auto& t) { t.average_decay = 1; }).find("average_decay"), std::string::npos);
}

}  // namespace
}  // namespace tacit::train
