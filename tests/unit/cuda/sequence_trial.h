#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "cuda/learn/sequence_engine.h"
#include "mechanism/clipper.h"
#include "model/sequence/unit_rows.h"
#include "train/sequence/sequence_stepper.h"
#include "unit/cuda/replayed_noise.h"
#include "unit/cuda/trial_device.h"

// Steps of a small sequence model, taken by the device and by the CPU's stepper with its noise.
namespace tacit::cuda::testing {

using model::SequenceOptions;

// Users of up to 14 items each.
class Units final : public model::SequenceUnits {
 public:
  Units(const SequenceOptions& options, uint32_t units, uint64_t seed) : options_(options) {
    std::mt19937_64 random(seed);
    for (uint32_t u = 0; u < units; ++u) {
      // Some have no pair of items at all.
      std::vector<uint32_t>& history = histories_.emplace_back();
      for (uint64_t n = u == 1 ? 1 : random() % 15; n > 0; --n)
        history.push_back(static_cast<uint32_t>(random() % options.catalogue));
    }
  }
  size_t units() const override { return histories_.size(); }
  uint64_t Id(size_t unit) const override { return 100 + unit; }
  size_t Cost(size_t unit) const override { return histories_[unit].size() + 1; }
  void Rows(size_t unit, uint64_t coins, model::UnitRows* rows) const override {
    CutCrops(options_, histories_[unit], 0, coins, rows);
  }
  std::vector<std::vector<uint32_t>>& histories() { return histories_; }

 private:
  const SequenceOptions options_;
  std::vector<std::vector<uint32_t>> histories_;
};

inline SequenceOptions SmallModel() {
  SequenceOptions model;
  model.catalogue = 21;
  model.length = 5;
  model.width = 8;
  model.heads = 2;
  model.blocks = 2;
  model.feed_forward = 11;
  model.crops = 2;
  return model;
}
inline train::SequenceTrainingOptions Training(const SequenceOptions& model) {
  train::SequenceTrainingOptions training;
  training.model = model;
  training.seed = 3;
  training.expected_batch = 6;
  training.schedule = {.steps = 20, .warm_up = 0.2, .decays = true};
  training.optimizer.kind = train::OptimizerNamed("sgd");
  training.optimizer.learning_rate = 0.5f;
  training.privacy.sigma = 1e-3;  // so that steps show more than noise
  training.privacy.clip_norm = 0.4;
  return training;
}

// With attention corrected for the noise in its keys, of items that come rarely and often.
inline train::SequenceTrainingOptions CorrectedTraining(SequenceOptions model) {
  model.re_attention = {.kappa = 1, .most = 2};
  auto training = Training(model);
  training.privacy.sigma = 0.05;
  training.privacy.item_share.assign(model.catalogue, 0.5f);
  training.privacy.item_share[3] = 0.01f;
  training.privacy.item_share[4] = 0.9f;
  return training;
}

struct State {
  std::vector<float> parameters, optimizer;
  bool operator==(const State&) const = default;
};
inline State StateOf(train::SequenceStepper& stepper) {
  const Status settled = stepper.Settle();
  EXPECT_TRUE(settled) << settled.error().message;
  return {{stepper.parameters().begin(), stepper.parameters().end()},
          {stepper.optimizer_state().begin(), stepper.optimizer_state().end()}};
}

inline std::vector<float> Logits(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

// The largest distances of a few steps' results from the CPU's.
struct SequenceGap {
  bool counts_differ = false;  // of steps, units or clipped units
  double loss = 0;             // as shares of the CPU's
  double relative = 0;         // of the two models, as a share of that which the CPU's has gone
  double each = 0;             // of a parameter
  double state = 0;            // of a number n of the optimiser's, as a share of 1 + |n|
  uint64_t clipped = 0;        // units, by the CPU

  bool IsWithin(double relative_most, double each_most) const {
    return !counts_differ && loss <= relative_most && relative <= relative_most &&
           each <= each_most && state <= each_most;
  }
};

class SequenceTrial : public OnDevice {
 protected:
  std::unique_ptr<train::SequenceStepper> OnTheDevice(
      const train::SequenceTrainingOptions& training, uint32_t wave_positions = 1000,
      uint32_t logit_rows = 0) {
    auto stepper = std::make_unique<train::SequenceStepper>(training, privacy::Draw{}, *backend_,
                                                            std::make_unique<EngineNoise>(9));
    auto engine = MakeDeviceSequenceEngine(*device_,
                                           {.sequence = stepper->EngineOptions(),
                                            .wave_positions = wave_positions,
                                            .logit_rows = logit_rows},
                                           *stepper->noise());
    EXPECT_TRUE(engine) << engine.error().message;
    if (engine) stepper->UseEngine(std::move(*engine));
    return stepper;
  }
  // A step of the CPU with the noise of the device's step of that number.
  static train::SequenceStepReport HostStep(train::SequenceStepper& stepper,
                                            const model::SequenceUnits& units) {
    auto& noise = static_cast<ReplayedNoise&>(*stepper.noise());
    const auto options = stepper.EngineOptions();
    noise.SetKey(KeyOfStep(static_cast<uint32_t>(stepper.steps_taken())));
    noise.WillDrawDense(stepper.parameters().size(), options.recipe.grid.stddev);
    train::SequenceStepReport report;
    EXPECT_TRUE(stepper.Step(units, &report));
    EXPECT_TRUE(noise.spent());
    return report;
  }
  std::unique_ptr<train::SequenceStepper> OnTheHost(
      const train::SequenceTrainingOptions& training) {
    return std::make_unique<train::SequenceStepper>(training, privacy::Draw{}, *backend_,
                                                    std::make_unique<ReplayedNoise>(9));
  }

  // Takes four steps on both sides; the third is of nobody.
  SequenceGap Measure(
      const train::SequenceTrainingOptions& training,
      const std::function<void(uint64_t step)>& before_step = [](uint64_t) {}) {
    const auto host = OnTheHost(training), device = OnTheDevice(training, 40);
    const State begun = StateOf(*host);
    SequenceGap gap;
    for (uint64_t step = 0; step < 4; ++step) {
      before_step(step);
      const Units units(training.model, step == 2 ? 0 : 9, step);
      const auto want = HostStep(*host, units);
      train::SequenceStepReport got;
      const Status taken = device->Step(units, &got);
      EXPECT_TRUE(taken) << taken.error().message;
      gap.counts_differ |= got.step != want.step || got.units != want.units ||
                           got.units_clipped != want.units_clipped;
      gap.clipped += want.units_clipped;
      if (got.loss != want.loss) Raise(&gap.loss, std::abs(got.loss - want.loss) / want.loss);
      Compare(StateOf(*device), StateOf(*host), begun, &gap);
    }
    return gap;
  }

  std::unique_ptr<ops::Backend> backend_ = ops::MakeReferenceBackend();

 private:
  // A distance that is none is beyond every bound.
  static void Raise(double* most, double distance) {
    if (!(distance <= *most))
      *most = std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
  }
  static void Compare(const State& got, const State& want, const State& begun, SequenceGap* gap) {
    ASSERT_EQ(got.parameters.size(), want.parameters.size());
    ASSERT_EQ(got.optimizer.size(), want.optimizer.size());
    double apart = 0, gone = 0;
    for (size_t i = 0; i < got.parameters.size(); ++i) {
      const double distance = std::abs(double{got.parameters[i]} - want.parameters[i]);
      apart += distance * distance;
      gone += std::pow(want.parameters[i] - begun.parameters[i], 2);
      Raise(&gap->each, distance);
    }
    Raise(&gap->relative, apart == 0 ? 0 : std::sqrt(apart / gone));
    for (size_t i = 0; i < got.optimizer.size(); ++i)
      // Counts are stored as the bits of a float.
      if (got.optimizer[i] != want.optimizer[i])
        Raise(&gap->state, std::abs(double{got.optimizer[i]} - want.optimizer[i]) /
                               (1 + std::abs(want.optimizer[i])));
  }
};

}  // namespace tacit::cuda::testing
