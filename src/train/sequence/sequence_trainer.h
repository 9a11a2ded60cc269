#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "mechanism/clipper.h"
#include "model/histories.h"
#include "model/sequence/sequence_model.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "privacy/charge.h"
#include "privacy/event.h"
#include "train/optimizer.h"
#include "train/sequence/schedule.h"
#include "train/sequence/unit_sampler.h"

namespace tacit::train {

// How the gradients of a run are bounded and noised. Nothing here has a default that promises
// anything.
struct SequencePrivacy {
  enum class Clip {
    kFlat,        // min(1, C / |g|)
    kNormalised,  // C / (|g| + 0.01), as in paper 000
  };
  bool on = true;    // false: no clip, no noise, no promise
  double sigma = 0;  // noise multiplier of a step
  Clip clip = Clip::kFlat;
  double clip_norm = 1;  // C
  // P(a unit's history holds the item), by item, from what was released with noise or is public.
  // For Re-Attention; empty: every item is in every history.
  std::vector<float> item_share = {};
  // Shares below count as this: an item that nobody has would have infinite variance.
  float item_share_min = 1e-3f;
};

struct SequenceTrainingOptions {
  model::SequenceOptions model;
  uint64_t seed = 1;          // of initial parameters and of all public coins; public
  double expected_batch = 0;  // units a step takes on average; the public divisor
  // Logits that the model's are added to, or null; must outlive the trainer. What it is made of
  // is charged elsewhere.
  const model::LogitPrior* prior = nullptr;
  RateSchedule schedule;
  OptimizerOptions optimizer;
  SequencePrivacy privacy;
};

// kInvalidArgument names what is missing or out of its domain. `units`: how many there are; public,
// for an absent unit is one with an empty history.
Status CheckOptions(const SequenceTrainingOptions& options, uint64_t units);

// The least certified noise multiplier of `steps` steps that take each unit with probability
// `rate`, for (epsilon, delta) of one unit, by the PLD accountant under add-or-remove; with rate 1
// the closed form. `beside`: what the same units pay for besides (a histogram of items, say).
Result<double> CalibrateSequenceNoise(double epsilon, double delta, double rate, uint64_t steps,
                                      const std::vector<privacy::CountedEvent>& beside = {});

// What happened in a step. Un-noised: operator-only.
struct SequenceStepReport {
  uint64_t step = 0;
  size_t units = 0;
  double loss = 0;  // mean over the units that had one
  size_t units_clipped = 0;
};

// Trains a sequence model on histories with DP-SGD over whole units: each step takes each unit by
// its own coin, forms every unit's gradient, bounds it, rounds it to the grid, adds integer noise
// to the sum and divides by the public expected batch. What follows is post-processing: Adam,
// DP-AdamBC or SGD, warm-up and decay, a moving average of the weights. An empty batch releases
// noise like any other. Every step costs charge().
//
// Not thread-safe; the work of a step is split over the backend's workers.
class SequenceTrainer {
 public:
  // REQUIRES CheckOptions(options, histories.units()) and CheckHistories(histories). `histories`
  // and `backend` must outlive it. `noise` and `coins` are different sources.
  SequenceTrainer(SequenceTrainingOptions options, const model::Histories& histories,
                  ops::Backend& backend, std::unique_ptr<noise::NoiseSource> noise,
                  std::unique_ptr<noise::NoiseSource> coins);

  const SequenceTrainingOptions& options() const { return options_; }
  model::SequenceModel& model() { return model_; }
  uint64_t steps_taken() const { return step_; }
  // Passes over the units so far, on average.
  double epochs_taken() const {
    return static_cast<double>(step_) * options_.expected_batch /
           static_cast<double>(histories_.units());
  }
  bool done() const { return step_ >= options_.schedule.steps; }
  // What one step costs each unit. Unbounded where privacy is off.
  const privacy::Charge& charge() const { return charge_; }
  // Of the noise on each number of an update; 0 where privacy is off.
  double update_stddev() const;

  // Replaces the initial parameters by what public data or charged releases say (item biases and
  // embeddings from counts). REQUIRES as many numbers as the layout has, before the first step.
  void SetInitial(std::vector<float> parameters);

  // One step. After a failure nothing was learnt and nothing released. REQUIRES !done().
  Status Step(SequenceStepReport* report);

  // The weights to predict with: their moving average where there is one.
  std::span<const float> Weights();
  // The noise in the weights, where attention is corrected by it.
  model::ParameterNoise parameter_noise() const;

  // The scores of items behind histories, by Weights(); see SequenceModel::Score.
  Status Score(std::span<const std::span<const uint32_t>> histories,
               const model::SequenceModel::Take& take);

 private:
  void Release();
  SequenceStepReport Report() const;

  const SequenceTrainingOptions options_;
  const model::Histories& histories_;
  ops::Backend& backend_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  model::SequenceModel model_;
  UnitSampler sampler_;
  std::unique_ptr<mechanism::Clipper> clipper_;  // null where privacy is off
  privacy::Charge charge_;
  std::vector<float> item_variance_;
  std::vector<float> parameters_, state_, update_, average_;
  model::SequenceSum sum_;
  uint64_t step_ = 0;
};

}  // namespace tacit::train
