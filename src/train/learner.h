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
#include "stream/participation.h"
#include "train/every_row_update.h"
#include "train/optimizer.h"

namespace tacit::train {

struct LearnerOptions {
  std::string id;
  LearnerIndex index;
  model::PctrOptions model;
  uint64_t seed = 1;  // of the initial parameters; public
  OptimizerOptions optimizer;
};

// What happened in a step. Un-noised: operator-only.
struct StepReport {
  std::span<const float> logits;  // predictions made before learning; valid until the next step
  double loss_sum = 0;
  uint64_t rows_touched = 0;  // distinct rows the step's units activated
  uint64_t rows_written = 0;
  uint64_t row_floats_written = 0;  // coordinates of those rows' gradients
  uint64_t units_clipped = 0;
};

// A model, the mechanism that guards it and the optimiser that moves it, on the trainer's rows.
// One private step after the other; knows nothing of streams, commits or budgets. Not thread-safe.
class Learner {
 public:
  // `backend` and `rows` must outlive the learner. `resume` is the dense state of the last commit,
  // null for a new learner.
  Learner(LearnerOptions options, std::unique_ptr<mechanism::Mechanism> mechanism,
          std::unique_ptr<noise::NoiseSource> noise, ops::Backend& backend,
          store::WorkingRows& rows, const store::DenseState* resume);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  const LearnerOptions& options() const { return options_; }
  const mechanism::Mechanism& mechanism() const { return *mechanism_; }
  const model::Pctr& model() const { return model_; }

  // Predicts, then learns. Returns false, with nothing changed, when `abandon` became true before
  // the mechanism was asked for anything.
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        StepReport* report);
  // Predicts alone: logits and loss of the report. The mechanism sees what is there, where it
  // learns from whole periods.
  Status Preview(const stream::StepBatch& batch, StepReport* report);
  // A copy for a commit.
  std::shared_ptr<const store::DenseState> CopyDense() const;
  // Goes on from what the mechanism had released. kCorruption names the learner.
  Status LoadMechanismState(std::string_view bytes);
  // The mechanism's state for a commit; null when it is as it was at the last call, or loaded.
  std::shared_ptr<const std::string> TakeMechanismState();
  // A new key for the noise; asked for at every commit.
  void Rekey() { noise_->Rekey(); }

 private:
  Status Predict(const stream::StepBatch& step);
  Status Apply();
  void ScoreRows();

  LearnerOptions options_;
  std::unique_ptr<mechanism::Mechanism> mechanism_;
  std::unique_ptr<noise::NoiseSource> noise_;
  ops::Backend& backend_;
  store::WorkingRows& rows_;
  model::Pctr model_;
  Optimizer optimizer_;
  EveryRowUpdate every_row_;
  store::DenseState dense_;
  uint64_t saved_version_ = 0;  // of the mechanism's state

  // Working memory of a step.
  model::ActivationIndexer indexer_;
  model::Activations activations_;
  model::Examples examples_;
  model::RowSelection selection_;
  model::StepGradient gradient_;
  model::GroupNorms norms_;
  std::vector<float*> row_pointers_;
  std::vector<double> row_scores_;
  std::vector<float> logits_, loss_, dlogit_, scales_;
};

// The layout of a learner's rows in the store.
store::RowLayout MakeRowLayout(const LearnerOptions& options, const model::Pctr& model);

}  // namespace tacit::train
