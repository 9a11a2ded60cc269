#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "mechanism/clipper.h"
#include "model/sequence/described_start.h"
#include "model/sequence/sequence_model.h"
#include "model/sum_map.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "privacy/charge.h"
#include "train/engines/sequence_engine.h"
#include "train/optimizer/optimizer.h"
#include "train/sequence/schedule.h"

namespace tacit::train {

// The clip and noise of a run's gradients. No default here promises anything.
struct SequenceGuard {
  enum class Clip {
    kFlat,        // min(1, C / |g|)
    kNormalised,  // C / (|g| + 0.01), as in paper 000
  };
  bool on = true;    // false: no clip, no noise, no promise
  double sigma = 0;  // noise multiplier of a step
  Clip clip = Clip::kFlat;
  double clip_norm = 1;  // C
  // P(a unit's history holds the item), by item, from public data or noised releases. For
  // Re-Attention; if empty, every item is in every history.
  std::vector<float> item_share = {};
  // Lower limit of the shares: an item in no history would have infinite variance.
  float item_share_min = 1e-3f;
};

struct SequenceTrainingOptions {
  model::SequenceOptions model;
  uint64_t seed = 1;                // for initial parameters and all public coins; public
  double expected_batch = 0;        // units per step on average; the public divisor
  model::DescribedStart described;  // of the initial embeddings
  // Logits added to the model's, or null; must outlive the stepper. The prior's own releases are
  // charged elsewhere.
  const model::LogitPrior* prior = nullptr;
  RateSchedule schedule;
  OptimizerOptions optimizer;
  model::SumMapOptions sum_map = {};  // of the encoder's gradients
  SequenceGuard privacy;
};

// kInvalidArgument names what is missing or out of its domain.
Status CheckOptions(const SequenceTrainingOptions& options);

std::vector<float> InitialParameters(const SequenceTrainingOptions& options,
                                     const model::SequenceLayout& layout);

// Deviation of the noise on each number of a step's sum, divided; 0 where privacy is off.
double UpdateStddev(const SequenceGuard& privacy, double expected_batch);

// The noise in the parameters, for Re-Attention, where a unit has each item with this chance
// (empty: every unit has every item). Empty where attention is not corrected.
model::KeptNoise NoiseOf(const SequenceTrainingOptions& options, std::span<const float> share);

// The cost of one step to each unit, which is in it with this probability. Unbounded where privacy
// is off.
privacy::Charge StepCharge(const SequenceGuard& privacy, const privacy::Draw& draw);

// A sequence model in training, and its private step on given units. Every unit's gradient is
// formed, bounded and rounded to the grid; integer noise is added to the sum, which is divided by
// the public expected batch. What follows is post-processing: Adam, DP-AdamBC or SGD, warm-up and
// decay, a moving average of the weights. A step without units releases noise like any other.
//
// The numbers that are bounded, summed and noised are what a map makes of gradients
// (model/sum_map.h), and become a gradient of the weights after the noise. The map is chosen before
// a step looks at its units, by the parameters, the initial ones, the seed and the step's number.
//
// Knows nothing of where units come from. The work of a step is split over the backend's workers.
// Not thread-safe.
class SequenceStepper {
 public:
  // REQUIRES CheckOptions(options). `draw`: how units come into a step, for the charge. `backend`
  // must outlive it.
  SequenceStepper(SequenceTrainingOptions options, const privacy::Draw& draw, ops::Backend& backend,
                  std::unique_ptr<noise::NoiseSource> noise);

  const SequenceTrainingOptions& options() const { return options_; }
  model::SequenceModel& model() { return model_; }
  // The cost of one step to each unit. Unbounded where privacy is off.
  const privacy::Charge& charge() const { return charge_; }
  double update_stddev() const { return update_stddev_; }
  // The noise in the weights, if attention is corrected by it; else empty.
  model::ParameterNoise parameter_noise() const { return in_weights_.view(); }

  // Brings these and Weights() up to the last step, where an engine has taken steps since.
  Status Settle();
  std::span<const float> parameters() const { return Settled(parameters_); }
  std::span<const float> optimizer_state() const { return Settled(state_); }
  uint64_t steps_taken() const { return step_; }
  // Resumes a stored run. REQUIRES vectors of the model's sizes, before the first step.
  void Resume(std::span<const float> parameters, std::span<const float> optimizer_state,
              uint64_t steps_taken);
  // Sets initial parameters from public data or charged releases; the map then follows what has
  // moved from those. REQUIRES as many numbers as the layout has, before the first step.
  void SetInitial(std::vector<float> parameters);
  // Makes later steps the work of an engine. What it computes comes back with Settle.
  void UseEngine(std::unique_ptr<SequenceEngine> engine) {
    engine_ = std::move(engine);
    engine_is_behind_ = true;
  }
  // Returns all that such an engine must know.
  SequenceEngineOptions EngineOptions() const;
  // Corrects attention by these shares, of a later release, from now on, instead of
  // options().privacy.item_share. REQUIRES one for each item, or none at all.
  void SetItemShare(std::span<const float> share);

  // Takes one step: GradientOf, then Release. After a failure nothing was learnt and nothing
  // released.
  Status Step(const model::SequenceUnits& units, SequenceStepReport* report);
  // First half of a step: computes the bounded sum, which is not released yet.
  Status GradientOf(const model::SequenceUnits& units);
  // Second half of a step: adds noise and updates the parameters. After a failure nothing was
  // learnt and nothing released.
  Result<SequenceStepReport> Release();

  // The weights to predict with: their moving average if there is one. Valid until the next step.
  // REQUIRES, as parameters() and optimizer_state() do, that what an engine has learnt is settled.
  std::span<const float> Weights();
  noise::NoiseSource* noise() { return noise_.get(); }
  void Rekey() {
    if (noise_ != nullptr) noise_->Rekey();
  }

 private:
  std::span<const float> Settled(const std::vector<float>& numbers) const {
    TACIT_CHECK(!engine_is_ahead_, "numbers that are still on a GPU");
    return numbers;
  }
  Result<std::span<const float>> NoisedGradient();
  SequenceStepReport Report() const;

  const SequenceTrainingOptions options_;
  ops::Backend& backend_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  model::SequenceModel model_;
  std::unique_ptr<mechanism::Clipper> clipper_;  // null where privacy is off
  const privacy::Charge charge_;
  const double update_stddev_;
  model::KeptNoise in_weights_;
  std::vector<float> parameters_, state_, update_;
  std::unique_ptr<model::SumMap> map_;
  model::SequenceSum sum_;
  uint64_t step_ = 0;
  std::unique_ptr<SequenceEngine> engine_;  // if null, steps are computed here
  bool engine_is_behind_ = false;           // it has not got the parameters
  bool engine_is_ahead_ = false;            // it alone has them
};

}  // namespace tacit::train
