#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/learner.h"
#include "train/recent_histories.h"
#include "train/sequence/sequence_stepper.h"

namespace tacit::train {

struct SequenceLearnerOptions {
  std::string id;
  LearnerIndex index;
  SequenceTrainingOptions training;
  double sampling_rate = 1;  // the participation's
  RecentHistoriesOptions histories;
  // This many units of a step are asked for their next item before it is learnt from, for operator
  // metrics only.
  uint32_t asked_most = 32;
};

// A sequence model that follows the stream. Each unit of a step is a user, with the user's
// remembered and new items. All parameters are dense and noised at every step. A later step that
// reads an item again is another participation of its user, so the unit is the user.
class SequenceLearner final : public Learner {
 public:
  // REQUIRES CheckOptions(options.training). `resume` is the dense state of the last commit, after
  // `steps_taken` steps; null for a new learner. `backend` must outlive the learner.
  SequenceLearner(SequenceLearnerOptions options, RecentHistories::Reader reader,
                  std::unique_ptr<noise::NoiseSource> noise, ops::Backend& backend,
                  const store::DenseState* resume, uint64_t steps_taken);

  privacy::Charge charge() const override { return stepper_.charge(); }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        StepReport* report) override;
  Status Preview(const stream::StepBatch& batch, StepReport* report) override;
  Result<bool> GivesNumbers() override;
  std::shared_ptr<const store::DenseState> CopyDense() const override;
  std::optional<store::HistoryCommit> TakeHistories() override { return recent_.Take(); }
  Status LoadReleased(std::string_view bytes) override;
  void Rekey() override { stepper_.Rekey(); }

 private:
  Status AskForNext(StepReport* report);

  const SequenceLearnerOptions options_;
  RecentHistories recent_;
  SequenceStepper stepper_;
  StepHistories step_;
};

// The cost of one step to each unit in it.
privacy::Charge ChargeOf(const SequenceLearnerOptions& options);

// The layout of such a learner in the store: no rows, and the average that serving reads.
store::RowLayout MakeRowLayout(const SequenceTrainingOptions& options);

}  // namespace tacit::train
