#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "model/histories.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "train/sequence/sequence_stepper.h"
#include "train/sequence/unit_sampler.h"

namespace tacit::train {

// Checks the stepper's options, and that the expected batch is at most `units`. `units` is public:
// an absent unit is one with an empty history.
inline Status CheckOptions(const SequenceTrainingOptions& options, uint64_t units) {
  TACIT_RETURN_IF_ERROR(CheckOptions(options));
  if (units == 0) return Fail(ErrorCode::kInvalidArgument, "sequence training: there are no units");
  if (options.expected_batch <= static_cast<double>(units)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("sequence training: expected_batch {} of {} units",
                          options.expected_batch, units));
}

// Trains a sequence model on histories with DP-SGD over whole units: each step draws each unit by
// its own coin and is a step of a SequenceStepper. Every step costs charge(). Not thread-safe.
class SequenceTrainer {
 public:
  // REQUIRES CheckOptions(options, histories.units()) and CheckHistories(histories). `histories`
  // and `backend` must outlive it. `noise` and `coins` are different sources.
  SequenceTrainer(SequenceTrainingOptions options, const model::Histories& histories,
                  ops::Backend& backend, std::unique_ptr<noise::NoiseSource> noise,
                  std::unique_ptr<noise::NoiseSource> coins)
      : histories_(histories),
        sampler_(histories.units(), RateOf(options.expected_batch, histories.units()),
                 std::move(coins)),
        stepper_(std::move(options), {.rate = sampler_.rate()}, backend, std::move(noise)) {
    const Status status = CheckOptions(this->options(), histories.units());
    TACIT_CHECK(status.has_value(), "options are checked before a trainer is made");
    TACIT_CHECK(histories.catalogue == this->options().model.catalogue,
                "histories of another catalogue");
    // Items index embeddings and logits.
    TACIT_CHECK(model::CheckHistories(histories).has_value(), "every item is of the catalogue");
  }

  const SequenceTrainingOptions& options() const { return stepper_.options(); }
  model::SequenceModel& model() { return stepper_.model(); }
  uint64_t steps_taken() const { return stepper_.steps_taken(); }
  bool done() const { return steps_taken() >= options().schedule.steps; }
  const privacy::Charge& charge() const { return stepper_.charge(); }
  double update_stddev() const { return stepper_.update_stddev(); }

  // Takes one step. After a failure nothing was learnt and nothing released. REQUIRES !done().
  Status Step(SequenceStepReport* report) {
    TACIT_CHECK(!done(), "a step more than was planned and charged");
    const model::HistoryUnits units(model().layout().options(), histories_, sampler_.Sample());
    return stepper_.Step(units, report);
  }

  // The weights to predict with: their moving average if there is one.
  std::span<const float> Weights() { return stepper_.Weights(); }
  model::ParameterNoise parameter_noise() const { return stepper_.parameter_noise(); }

  // Scores the items that may follow each history, by Weights(); see SequenceModel::Score.
  Status Score(std::span<const std::span<const uint32_t>> histories,
               const model::SequenceModel::Take& take) {
    return model().Score(Weights(), parameter_noise(), histories, take);
  }

 private:
  static double RateOf(double expected_batch, uint64_t units) {
    return std::min(1.0, expected_batch / static_cast<double>(std::max<uint64_t>(1, units)));
  }

  const model::Histories& histories_;
  UnitSampler sampler_;
  SequenceStepper stepper_;
};

}  // namespace tacit::train
