// A sequence model whose matrices have low-rank carriers, in its trainer's hands: noise on every
// number of the sum, an update along public directions alone, the charge of DP-SGD, and the same
// carriers after a restart.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "carried_update.h"
#include "support/silent_noise.h"
#include "train/sequence/sequence_stepper.h"

namespace tacit::train {
namespace {

using carried::BeyondPublic;
using carried::NoiseOf;
using carried::NoiseSeen;
using Source = model::CarrierOptions::Source;

constexpr uint32_t kCatalogue = 12, kRank = 3;
constexpr double kBatch = 8, kClip = 0.5, kSigma = 2;

// Users who go round a circle of items, each from a place of the seed's.
model::Histories Circles(size_t users, uint64_t seed) {
  std::mt19937_64 random(seed);
  model::Histories histories;
  histories.catalogue = kCatalogue;
  for (size_t u = 0; u < users; ++u) {
    const auto first = static_cast<uint32_t>(random() % kCatalogue);
    for (uint32_t i = 0; i < 9; ++i) histories.items.push_back((first + i) % kCatalogue);
    histories.end.push_back(histories.items.size());
  }
  return histories;
}

// By SGD at rate 1, so that an update is what the model moves by.
SequenceTrainingOptions Options(const model::CarrierOptions& carriers = {.rank = kRank}) {
  SequenceTrainingOptions options;
  options.model.catalogue = kCatalogue;
  options.model.length = 8;
  options.model.width = 16;
  options.model.blocks = 2;
  options.model.dropout = 0.1f;
  options.expected_batch = kBatch;
  options.optimizer.kind = OptimizerNamed("sgd");
  options.optimizer.learning_rate = 1;
  options.privacy.sigma = kSigma;
  options.privacy.clip_norm = kClip;
  options.sum_map = model::CarriersOf(carriers);
  return options;
}

class SequenceCarriers : public ::testing::Test {
 protected:
  // A stepper and what the public knows of it.
  struct Stepping {
    SequenceTrainingOptions options;
    ops::Backend& backend;
    SequenceStepper stepper;
    std::vector<model::Carriers::Weights> matrices;

    Stepping(const SequenceTrainingOptions& given, ops::Backend& on,
             std::unique_ptr<noise::NoiseSource> noise)
        : options(given),
          backend(on),
          stepper(options, {}, backend, std::move(noise)),
          matrices(stepper.model().layout().Matrices()) {}

    std::vector<float> Step(const model::Histories& histories) {
      const auto before = Parameters();
      std::vector<uint64_t> all(histories.units());
      for (uint64_t u = 0; u < all.size(); ++u) all[u] = u;
      SequenceStepReport report;
      const Status status =
          stepper.Step(model::HistoryUnits(options.model, histories, all), &report);
      EXPECT_TRUE(status) << status.error().message;
      std::vector<float> moved(before.size());
      for (size_t i = 0; i < moved.size(); ++i) moved[i] = before[i] - stepper.parameters()[i];
      return moved;
    }
    std::vector<float> Parameters() const {
      return {stepper.parameters().begin(), stepper.parameters().end()};
    }
    // The carriers that the next step must have, by public values alone.
    std::unique_ptr<model::Carriers> Public() {
      const auto& how = options.sum_map.make.target<model::CarrierMaker>()->options;
      auto carriers = From(how, stepper.model().layout().Initial(options.seed), options.seed);
      EXPECT_TRUE(carriers->Choose(stepper.steps_taken(), stepper.parameters()));
      return carriers;
    }
    std::unique_ptr<model::Carriers> From(const model::CarrierOptions& how,
                                          std::span<const float> initial, uint64_t seed) {
      return std::make_unique<model::Carriers>(how, matrices, initial, seed, backend);
    }
  };
  Stepping Make(const SequenceTrainingOptions& options) {
    return {options, *backend_, noise::MakeNoiseSource()};
  }
  Stepping MakeSilent(const SequenceTrainingOptions& options) {
    return {options, *backend_, std::make_unique<noise::SilentNoise>()};
  }

  WorkerPool workers_{WorkerPool::Options{2, false}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
};

// The fault: these numbers of the sum get no noise.
class ExceptOn final : public noise::SilentNoise {
 public:
  ExceptOn(size_t begin, size_t end) : begin_(begin), end_(end) {}
  void ForParts(size_t n, const Part& part) override {
    at_ = 0;
    part(0, n, *this);
  }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    const std::vector<int64_t> before(values.begin(), values.end());
    noise_->AddGridGaussian(stddev, values);
    for (size_t i = 0; i < values.size(); ++i, ++at_)
      if (at_ >= begin_ && at_ < end_) values[i] = before[i];
  }

 private:
  const std::unique_ptr<noise::NoiseSource> noise_ = noise::MakeNoiseSource();
  const size_t begin_, end_;
  size_t at_ = 0;
};

TEST_F(SequenceCarriers, EveryNumberOfTheSumHasItsNoiseAndANumberWithoutIsFoundOut) {
  const double variance = std::pow(kClip * kSigma / kBatch, 2);
  constexpr int kSteps = 200;
  // Two blocks of 16 x 48, and three times 16 x 16: 8 deviations.
  const double left_off = 8 * std::sqrt(2.0 / (kSteps * 2 * 4 * 13 * kRank));
  const double right_off = 8 * std::sqrt(2.0 / (kSteps * 2 * 96 * kRank));
  const auto seen = [&](Stepping stepping) {
    NoiseSeen mean;
    for (int step = 0; step < kSteps; ++step) {
      const auto carriers = stepping.Public();
      const auto update = stepping.Step(Circles(0, 1));
      mean.Add(NoiseOf(update, *carriers, stepping.matrices, variance), 1.0 / kSteps);
    }
    return mean;
  };
  for (const Source source : {Source::kHistorical, Source::kRandom}) {
    const auto options = Options({.source = source, .rank = kRank});
    const NoiseSeen mean = seen(Make(options));
    EXPECT_NEAR(mean.left, 1, left_off);
    EXPECT_NEAR(mean.right, 1, right_off);
    EXPECT_NEAR(mean.biases, 1, 8 * std::sqrt(2.0 / (kSteps * 2 * 96)));
    EXPECT_TRUE(mean.Right());
  }
  // Planted: dL, or dR, of a block's first matrix gets none.
  Stepping probe = Make(Options());
  const auto carriers = probe.Public();
  for (const bool left : {true, false})
    for (const size_t m : {size_t{0}, size_t{4}}) {
      const model::Carriers::Weights& w = probe.matrices[m];
      const size_t at = carriers->PlaceOf(w.offset) + (left ? 0 : w.in * kRank);
      const size_t numbers = (left ? w.in : w.out) * kRank;
      const NoiseSeen mean =
          seen({Options(), *backend_, std::make_unique<ExceptOn>(at, at + numbers)});
      EXPECT_LT(left ? mean.left : mean.right, 1 - (left ? left_off : right_off))
          << "left " << left << " matrix " << m;
    }
}

TEST_F(SequenceCarriers, DirectionsArePublicWhateverTheUnitsAreAndThoseOfAGradientAreFoundOut) {
  for (const Source source : {Source::kHistorical, Source::kRandom}) {
    const auto options =
        Options({.source = source, .rank = kRank, .power_steps = 2, .warm_up_steps = 2});
    Stepping stepping = MakeSilent(options);
    for (uint64_t step = 0; step < 5; ++step) {
      const auto carriers = stepping.Public();
      const auto update = stepping.Step(Circles(6, step));
      // Parameters are floats, and the update is a difference of them.
      EXPECT_LT(BeyondPublic(update, *carriers, stepping.matrices), 1e-4) << "step " << step;
    }
    // Planted: carriers that look at the gradient of the step's units before it is released.
    const auto carriers = stepping.Public();
    SequenceTrainingOptions whole = options;
    whole.sum_map = {};
    Stepping peeks = MakeSilent(whole);
    peeks.stepper.Resume(stepping.stepper.parameters(), stepping.stepper.optimizer_state(),
                         stepping.stepper.steps_taken());
    std::vector<float> peeked = stepping.Parameters();
    const auto gradient = peeks.Step(Circles(6, 77));
    for (size_t i = 0; i < peeked.size(); ++i) peeked[i] += 100 * gradient[i];
    const auto raw = stepping.From({.rank = kRank}, stepping.stepper.parameters(), 5);
    ASSERT_TRUE(raw->Choose(5, peeked));
    const std::vector<float> sum(raw->sum_size(), 1.0f);
    const auto update = raw->Expand(sum);
    ASSERT_TRUE(update);
    EXPECT_GT(BeyondPublic(*update, *carriers, stepping.matrices), 0.3);
  }
}

// A unit that is taken out moves the update by its clip at most: what carriers make of dL and dR is
// no longer than they are. With a clip twice as long it moves it further.
TEST_F(SequenceCarriers, AUnitMovesTheUpdateByItsClipAtMost) {
  const model::Histories histories = Circles(6, 3);
  const auto moved = [&](double clip) {
    SequenceTrainingOptions options = Options();
    options.privacy.clip_norm = clip;
    options.model.dropout = 0;
    Stepping whole = MakeSilent(options), less = MakeSilent(options);
    model::Histories without = histories;  // the first user's records are nulls
    without.items.erase(without.items.begin(), without.items.begin() + 9);
    for (uint64_t& end : without.end) end -= 9;
    const auto with = whole.Step(histories), out = less.Step(without);
    double squared = 0;
    for (size_t i = 0; i < with.size(); ++i)
      squared += std::pow(kBatch * (double{with[i]} - out[i]), 2);
    return std::sqrt(squared);
  };
  EXPECT_LE(moved(0.05), 0.05 * (1 + 1e-3));
  EXPECT_GT(moved(0.05), 0.03);
  EXPECT_GT(moved(0.1), 0.05 * 1.2);
}

// Steps 0 to 7, the first three of them before a restart; 4 of warm-up.
TEST_F(SequenceCarriers, ARestartMakesNoDifferenceAndALostStepCountIsFoundOut) {
  for (const Source source : {Source::kHistorical, Source::kRandom}) {
    SequenceTrainingOptions options =
        Options({.source = source, .rank = kRank, .warm_up_steps = 4});
    options.optimizer.kind = OptimizerNamed("adam");
    options.optimizer.learning_rate = 0.01f;
    options.model.dropout = 0;  // its coins are of the step too
    Stepping whole = MakeSilent(options), again = MakeSilent(options), lost = MakeSilent(options);
    for (uint64_t step = 0; step < 8; ++step) {
      if (step == 3) {
        const auto parameters = whole.Parameters();
        const auto state = whole.stepper.optimizer_state();
        again.stepper.Resume(parameters, state, 3);
        lost.stepper.Resume(parameters, state, 0);
      }
      whole.Step(Circles(6, step));
      if (step < 3) continue;
      again.Step(Circles(6, step));
      lost.Step(Circles(6, step));
    }
    EXPECT_EQ(again.Parameters(), whole.Parameters());
    EXPECT_NE(lost.Parameters(), whole.Parameters());
  }
}

// Parameters that are set before the first step are where a learner begins, and has not moved from.
TEST_F(SequenceCarriers, FollowWhatHasMovedFromTheParametersThatWereSet) {
  Stepping stepping = MakeSilent(Options({.rank = 1}));
  std::vector<float> initial = stepping.Parameters(), moved = initial;
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  for (float& p : initial) p += normal(random);
  stepping.stepper.SetInitial(initial);
  stepping.Step(Circles(6, 1));
  // The first step's update is of random directions, and the second's carriers span it.
  const auto carriers = stepping.From({.rank = 1}, initial, 1);
  ASSERT_TRUE(carriers->Choose(1, stepping.stepper.parameters()));
  const auto update = stepping.Step(Circles(6, 2));
  EXPECT_LT(BeyondPublic(update, *carriers, stepping.matrices), 1e-4);
  const auto of_seed = stepping.From({.rank = 1}, moved, 1);
  ASSERT_TRUE(of_seed->Choose(1, stepping.stepper.parameters()));
  EXPECT_GT(BeyondPublic(update, *of_seed, stepping.matrices), 0.3);
}

TEST_F(SequenceCarriers, AStepCostsWhatItCostsWithout) {
  SequenceTrainingOptions whole = Options();
  whole.sum_map = {};
  const Stepping with = MakeSilent(Options()), without = MakeSilent(whole);
  const privacy::Charge a = with.stepper.charge(), b = without.stepper.charge();
  EXPECT_EQ(a.mechanism, privacy::MechanismKind::kDpSgd);
  EXPECT_EQ(a.mechanism, b.mechanism);
  EXPECT_EQ(a.noise_multiplier, b.noise_multiplier);
  EXPECT_EQ(a.sigma_gradient, b.sigma_gradient);
  EXPECT_EQ(a.clip_gradient, b.clip_gradient);
  EXPECT_EQ(a.noise_multiplier, kSigma);
}

// The same carriers serve where nothing is private, without noise.
TEST_F(SequenceCarriers, LearnTheCircleWithAndWithoutPrivacy) {
  for (const bool is_private : {true, false})
    for (const auto encoder :
         {model::SequenceOptions::Encoder::kTransformer, model::SequenceOptions::Encoder::kGru}) {
      SequenceTrainingOptions options = Options();
      options.model.encoder = encoder;
      options.model.dropout = 0;
      options.expected_batch = 400;
      options.privacy.on = is_private;
      options.privacy.clip = SequenceGuard::Clip::kNormalised;
      options.privacy.clip_norm = 1;
      options.optimizer.kind = OptimizerNamed("adam");
      options.optimizer.learning_rate = 0.03f;
      Stepping stepping = Make(options);
      const model::Histories histories = Circles(400, 5);
      std::vector<uint64_t> all(400);
      for (uint64_t u = 0; u < all.size(); ++u) all[u] = u;
      SequenceStepReport report;
      for (int step = 0; step < 50; ++step)
        ASSERT_TRUE(
            stepping.stepper.Step(model::HistoryUnits(options.model, histories, all), &report));
      EXPECT_LT(report.loss, 1.2) << is_private;
    }
}

TEST_F(SequenceCarriers, WhatTheyDoNotFitIsRefused) {
  EXPECT_TRUE(CheckOptions(Options()));
  const auto refusal = [](const SequenceTrainingOptions& options) {
    const Status status = CheckOptions(options);
    return status ? std::string() : status.error().message;
  };
  EXPECT_NE(refusal(Options({.rank = 0})).find("rank 0"), std::string::npos);
  EXPECT_NE(refusal(Options({.power_steps = 0})).find("no power step"), std::string::npos);
  SequenceTrainingOptions subtracts = Options();
  subtracts.optimizer.kind = OptimizerNamed("adam-bc");
  EXPECT_NE(refusal(subtracts).find("adam-bc takes the noise's share"), std::string::npos);
}

}  // namespace
}  // namespace tacit::train
