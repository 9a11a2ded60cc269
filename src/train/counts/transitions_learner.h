#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/threads/worker_pool.h"
#include "model/transitions/released_model.h"
#include "model/transitions/scorer.h"
#include "noise/noise.h"
#include "train/counts/next_item_exam.h"
#include "train/counts/recent_histories.h"
#include "train/counts/transitions_release.h"
#include "train/learner/learner.h"

namespace tacit::train {

struct TransitionsLearnerOptions {
  std::string id;
  LearnerIndex index;
  std::shared_ptr<const model::transitions::PublicItems> catalogue;
  model::transitions::Options model;
  double noise_multiplier = 0;  // per period: 1 / mu. 0: no noise and no promise
  RecentHistoriesOptions histories;
  // This many units of a step are asked for their next item before it is learnt from, for operator
  // metrics only.
  uint32_t asked_most = 256;
  TransitionsProgress progress = {};  // of a release; may be empty
};

// The shaped count model in a stream. A step is a period, whose counts are all released at once.
// The learner keeps released numbers alone, as the mechanism's state.
class TransitionsLearner final : public Learner {
 public:
  // `workers` must outlive the learner.
  TransitionsLearner(TransitionsLearnerOptions options, RecentHistories::Reader reader,
                     std::unique_ptr<noise::NoiseSource> noise, WorkerPool& workers);

  privacy::Charge charge() const override { return charge_; }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        StepReport* report) override;
  Status Preview(const stream::StepBatch& batch, StepReport* report) override;
  std::shared_ptr<const store::DenseState> CopyDense() const override { return nullptr; }
  std::shared_ptr<const std::string> TakeReleased() override;
  std::optional<store::HistoryCommit> TakeHistories() override { return recent_.Take(); }
  Status LoadReleased(std::string_view bytes) override;
  void Rekey() override { noise_->Rekey(); }
  // All that was released so far.
  const model::transitions::ReleasedModel& released() const { return model_; }

 private:
  NextItemExam::Model Answers();

  const TransitionsLearnerOptions options_;
  const privacy::Charge charge_;
  RecentHistories recent_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  WorkerPool& workers_;
  model::transitions::ReleasedModel model_;
  std::unique_ptr<model::transitions::Scorer> scorer_;  // built on demand; null if stale
  NextItemExam exam_;
  StepHistories step_;
  bool changed_ = false;
};

// The charge of a period with this noise to each unit in it.
privacy::Charge TransitionsPeriodCharge(double noise_multiplier);

}  // namespace tacit::train
