#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "mechanism/mechanism.h"
#include "model/pctr.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "stream/steps/participation.h"
#include "train/engines/click_engine.h"
#include "train/learner/learner.h"
#include "train/optimizer/optimizer.h"

namespace tacit::train {

struct ClickOptions {
  std::string id;
  LearnerIndex index;
  model::PctrOptions model;
  uint64_t seed = 1;  // seed of the initial parameters; public
  OptimizerOptions optimizer;
  model::SumMapOptions sum_map = {};  // of the dense layers' gradients
  bool bf16_rows = false;             // store::RowLayout::bf16

  // The options of its engine, after this many steps.
  ClickEngineOptions Engine(uint64_t steps_taken) const {
    return {.model = model,
            .optimizer = optimizer,
            .sum_map = sum_map,
            .seed = seed,
            .steps_taken = steps_taken};
  }
};

// A click model with the mechanism that guards it. An engine does the work of each step; the
// learner says when it is done and what it costs.
class ClickLearner final : public Learner {
 public:
  // `engine` was made with this mechanism and this noise, for these options.
  ClickLearner(ClickOptions options, std::unique_ptr<mechanism::Mechanism> mechanism,
               std::unique_ptr<noise::NoiseSource> noise, std::unique_ptr<ClickEngine> engine);
  // Learns on this machine's processor. `backend` and `rows` must outlive the learner. `resume` is
  // the dense state of the last commit, after `steps_taken` steps; null for a new learner.
  ClickLearner(ClickOptions options, std::unique_ptr<mechanism::Mechanism> mechanism,
               std::unique_ptr<noise::NoiseSource> noise, ops::Backend& backend,
               store::WorkingRows& rows, const store::DenseState* resume, uint64_t steps_taken = 0);

  const ClickOptions& options() const { return options_; }
  const mechanism::Mechanism& mechanism() const { return *mechanism_; }

  privacy::Charge charge() const override { return mechanism_->charge(); }
  std::optional<privacy::Charge> opening_charge() const override {
    return mechanism_->opening_charge();
  }
  void Announce(const stream::StepBatch& next) override { engine_->Announce(next); }
  void Withdraw() override { engine_->Withdraw(); }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        StepReport* report) override;
  // Fills in the report's logits and loss. A mechanism that learns from whole periods observes the
  // activations.
  Status Preview(const stream::StepBatch& batch, StepReport* report) override;
  Result<bool> GivesNumbers() override;
  Status Settle() override { return engine_->Settle(); }
  std::shared_ptr<const store::DenseState> CopyDense() const override;
  Status LoadReleased(std::string_view bytes) override;
  std::shared_ptr<const std::string> TakeReleased() override;
  void Rekey() override { noise_->Rekey(); }

 private:
  void Observe(const stream::StepBatch& batch);

  ClickOptions options_;
  std::unique_ptr<mechanism::Mechanism> mechanism_;
  std::unique_ptr<noise::NoiseSource> noise_;
  std::unique_ptr<ClickEngine> engine_;  // after what it refers to
  uint64_t saved_version_ = 0;           // version of the mechanism state last saved

  // Working memory of a period's observation.
  model::ActivationIndexer indexer_;
  model::Activations observed_;
};

// The dense state that a learner starts from.
store::DenseState InitialDense(const ClickOptions& options, const model::Pctr& model);

// The dense state of a model with other inputs: input i of the first layer was inputs[i], or is
// new. The weights of a new one are drawn (Optimizer::kNew), so that it must be 0 for predictions
// to stay, or begin at 0 (kNewWithoutWeight), so that it may be anything. All that follows the
// first layer's weights stays. Returns kRefused for a state of other layers.
inline constexpr size_t kNewWithoutWeight = Optimizer::kNew - 1;
Result<store::DenseState> GrownDense(const ClickOptions& options, const model::Pctr& model,
                                     const store::DenseState& was, std::span<const size_t> inputs);

// The layout of a learner's rows in the store.
store::RowLayout MakeRowLayout(const ClickOptions& options, const model::Pctr& model);

}  // namespace tacit::train
