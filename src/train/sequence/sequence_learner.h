#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/sequence/trained_scorer.h"
#include "train/counts/next_item_exam.h"
#include "train/counts/recent_histories.h"
#include "train/engines/gpu.h"
#include "train/learner/learner.h"
#include "train/sequence/sequence_start.h"
#include "train/sequence/sequence_stepper.h"

namespace tacit::train {

struct SequenceLearnerOptions {
  std::string id;
  LearnerIndex index;
  SequenceTrainingOptions training;
  privacy::Draw draw = {};  // the participation's
  // Only held periods open: under `once` nothing is ever released before a step.
  SequenceStartOptions start = {};
  RecentHistoriesOptions histories;
  // This many units of a step are asked for their next item before it is learnt from, for operator
  // metrics only.
  uint32_t asked_most = 32;
  // The users of the largest step for which a GPU has memory beforehand. 0: for none.
  uint64_t planned_users = 0;
};

// The step for which a GPU has memory beforehand.
SequenceStepSizes PlannedStep(const SequenceLearnerOptions& options);

// The dense state of the model for a catalogue that begins with `items_before` items of before and
// has more: those begin as in a new model. kRefused: a state of another model.
// Item i is at places[i] of the catalogue now; without places the new ones come last. Where items
// are in between, these begin as rows of their own, drawn like no other.
Result<store::DenseState> GrownDense(const SequenceTrainingOptions& options, uint32_t items_before,
                                     const store::DenseState& was,
                                     std::span<const uint32_t> places = {});

// Checks the start too, and that it goes with the model. kInvalidArgument names what is out of its
// domain.
Status CheckOptions(const SequenceLearnerOptions& options);

// A sequence model that follows the stream. Each unit of a step is a user, with the user's
// remembered and new items. Remembered items were learnt from before: they are read, and not
// predicted again. All parameters are dense and noised at every step. A later step that reads an
// item again is another participation of its user, so the unit is the user.
//
// With a start, the first step of a period is preceded by its release. What the start has released
// is the learner's released state; an unfinished period that is read again goes on with it.
class SequenceLearner final : public Learner {
 public:
  // REQUIRES CheckOptions(options), and noise if there is a start. `resume` is the dense state of
  // the last commit, after `steps_taken` steps; null for a new learner. `backend` must outlive the
  // learner.
  SequenceLearner(SequenceLearnerOptions options, RecentHistories::Reader reader,
                  std::unique_ptr<noise::NoiseSource> noise, ops::Backend& backend,
                  const store::DenseState* resume, uint64_t steps_taken);

  privacy::Charge charge() const override { return stepper_.charge(); }
  std::optional<privacy::Charge> opening_charge() const override;
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        StepReport* report) override;
  Status Preview(const stream::StepBatch& batch, StepReport* report) override;
  Result<bool> GivesNumbers() override;
  Status Settle() override { return stepper_.Settle(); }
  std::shared_ptr<const store::DenseState> CopyDense() const override;
  std::shared_ptr<const std::string> TakeReleased() override;
  std::optional<store::HistoryCommit> TakeHistories() override { return recent_.Take(); }
  Status LoadReleased(std::string_view bytes) override;
  void Rekey() override { stepper_.Rekey(); }

  // Makes its steps the work of a GPU. REQUIRES options with a form for it (WhyNotOnEngine), before
  // the first step.
  Status UseGpu(Gpu& gpu);
  // Sets the model so far, as it predicts. The learner must outlive the calls of Score; no step may
  // be taken while there is one.
  // REQUIRES Settle() since the last step.
  void Publish(model::TrainedScorer* scorer);

 private:
  NextItemExam::Model Answers();
  Status Open();
  void CorrectAttention();
  model::HistoryUnits StepUnits();

  const SequenceLearnerOptions options_;
  RecentHistories recent_;
  const std::unique_ptr<SequenceStart> start_;  // if null, nothing is released at an opening
  SequenceStepper stepper_;
  NextItemExam exam_;
  StepHistories step_;
  std::vector<uint64_t> everybody_;  // of step_
  bool released_ = false;            // since the last commit
};

// The cost of one step to each unit in it.
privacy::Charge ChargeOf(const SequenceLearnerOptions& options);

// The layout of such a learner in the store: no rows, and the average that serving reads.
store::RowLayout MakeRowLayout(const SequenceTrainingOptions& options);

}  // namespace tacit::train
