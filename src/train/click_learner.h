#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "mechanism/mechanism.h"
#include "model/pctr.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "store/delta.h"
#include "store/working_rows.h"
#include "stream/steps/participation.h"
#include "train/every_row_update.h"
#include "train/learner.h"
#include "train/optimizer.h"

namespace tacit::train {

struct ClickOptions {
  std::string id;
  LearnerIndex index;
  model::PctrOptions model;
  uint64_t seed = 1;  // seed of the initial parameters; public
  OptimizerOptions optimizer;
};

// A click model with the mechanism that guards it and the optimiser that updates it, on the
// trainer's rows.
class ClickLearner final : public Learner {
 public:
  // `backend` and `rows` must outlive the learner. `resume` is the dense state of the last commit,
  // null for a new learner.
  ClickLearner(ClickOptions options, std::unique_ptr<mechanism::Mechanism> mechanism,
               std::unique_ptr<noise::NoiseSource> noise, ops::Backend& backend,
               store::WorkingRows& rows, const store::DenseState* resume);

  const ClickOptions& options() const { return options_; }
  const mechanism::Mechanism& mechanism() const { return *mechanism_; }
  const model::Pctr& model() const { return model_; }

  privacy::Charge charge() const override { return mechanism_->charge(); }
  std::optional<privacy::Charge> opening_charge() const override {
    return mechanism_->opening_charge();
  }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        StepReport* report) override;
  // Fills in the report's logits and loss. A mechanism that learns from whole periods observes the
  // activations.
  Status Preview(const stream::StepBatch& batch, StepReport* report) override;
  Result<bool> GivesNumbers() override;
  std::shared_ptr<const store::DenseState> CopyDense() const override;
  Status LoadReleased(std::string_view bytes) override;
  std::shared_ptr<const std::string> TakeReleased() override;
  void Rekey() override { noise_->Rekey(); }

 private:
  Status Predict(const stream::StepBatch& step);
  Status Apply();
  void ScoreRows();

  ClickOptions options_;
  std::unique_ptr<mechanism::Mechanism> mechanism_;
  std::unique_ptr<noise::NoiseSource> noise_;
  ops::Backend& backend_;
  store::WorkingRows& rows_;
  model::Pctr model_;
  Optimizer optimizer_;
  EveryRowUpdate every_row_;
  store::DenseState dense_;
  uint64_t saved_version_ = 0;  // version of the mechanism state last saved

  // Working memory of a step.
  model::ActivationIndexer indexer_;
  model::Activations activations_;
  model::Examples examples_;
  model::RowSelection selection_;
  model::StepGradient gradient_;
  model::GroupNorms norms_;
  std::vector<float*> row_pointers_;
  std::vector<RowUpdate> row_updates_;
  std::vector<double> row_scores_;
  std::vector<float> logits_, loss_, dlogit_, scales_;
};

// The layout of a learner's rows in the store.
store::RowLayout MakeRowLayout(const ClickOptions& options, const model::Pctr& model);

}  // namespace tacit::train
