#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/threads/worker_pool.h"
#include "base/tuned.h"
#include "model/ranking/ranker.h"
#include "model/transitions/released_model.h"
#include "noise/noise.h"
#include "train/counts/next_item_exam.h"
#include "train/counts/recent_histories.h"
#include "train/counts/transitions_release.h"
#include "train/learner/learner.h"
#include "train/ranking/ranker_trainer.h"

namespace tacit::train {

// The constants of a ranker beside counts, set before the data is seen.
struct RankerOptions {
  double share = tuned::kRankerShare;  // of mu^2, for the ranker; the counts get the rest
  uint64_t steps = tuned::kRankerSteps;
  // Candidates that the ranker learns on, and how many it orders. WithCandidates fills them in.
  std::optional<uint64_t> candidates = {}, orders = {};
  uint64_t last_items = tuned::kRankerLastItems;
  double focus = tuned::kRankerFocus, learning_rate = tuned::kRankerLearningRate;
};

// The same options with the rule's candidates where there are none. Where items are described more
// are ordered than were learnt on, since what was learnt on the likeliest also holds for those
// after them; where they are not, few of either.
RankerOptions WithCandidates(const RankerOptions& options, bool described);

// The same counts beside a ranker, which knows the descriptions itself: their tables have less.
model::transitions::Options CountsBesideRanker(model::transitions::Options counts);

struct RankedLearnerOptions {
  std::string id;
  LearnerIndex index;
  std::shared_ptr<const model::transitions::PublicItems> catalogue;
  model::transitions::Options model;
  double noise_multiplier = 0;  // per period: 1 / mu. 0: no noise and no promise
  RankerOptions ranker = WithCandidates({}, /*described=*/true);  // REQUIRES candidates
  double expected_units = 0;  // users of a period, or a public number in its place
  uint64_t seed = 1;          // for initial parameters; public
  RecentHistoriesOptions histories = {};
  // This many units of a step are asked for their next item before it is learnt from, for operator
  // metrics only.
  uint32_t asked_most = 256;
  TransitionsProgress progress = {};                    // of the counts' release; may be empty
  std::function<void(uint64_t steps)> after_step = {};  // of the ranker; may be empty
};

// kInvalidArgument names what is out of its domain.
Status CheckOptions(const RankedLearnerOptions& options);

// The shaped count model with a small private model that reorders its likeliest items by their
// other features (model/ranking), in a stream. A step is a period: its counts are released, and
// then the ranker takes its steps on the same users, each with every one of them. All of it is
// adaptive composition of Gaussians on those users, one Gaussian of the period's noise multiplier,
// so that a period is charged once and lost or committed whole. The ranker goes on from period to
// period; its questions are about new items alone. Keeps released numbers only.
class RankedLearner final : public Learner {
 public:
  // REQUIRES CheckOptions(options). `workers` must outlive the learner.
  RankedLearner(RankedLearnerOptions options, RecentHistories::Reader reader,
                std::unique_ptr<noise::NoiseSource> noise, WorkerPool& workers);

  privacy::Charge charge() const override { return charge_; }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        StepReport* report) override;
  Status Preview(const stream::StepBatch& batch, StepReport* report) override;
  Result<bool> GivesNumbers() override;
  std::shared_ptr<const store::DenseState> CopyDense() const override { return nullptr; }
  std::shared_ptr<const std::string> TakeReleased() override;
  std::optional<store::HistoryCommit> TakeHistories() override { return recent_.Take(); }
  Status LoadReleased(std::string_view bytes) override;
  void Rekey() override { noise_->Rekey(); }

  // Scores every item as the next one after this history. Callable from any thread while no step is
  // taken, and from after_step. REQUIRES a released period.
  void Score(std::span<const uint32_t> history, std::span<float> scores) const;

 private:
  RankerTraining PlanOf(double sigma) const;
  bool AreNumbers() const;
  Status Learn();
  NextItemExam::Model Answers();
  void MakeSource();

  const RankedLearnerOptions options_;
  const privacy::Charge charge_;
  RecentHistories recent_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  WorkerPool& workers_;
  model::transitions::ReleasedModel model_;
  std::vector<float> parameters_;  // of the ranker; as drawn by the seed before the first period
  std::optional<model::ranking::CandidateSource> source_;  // of the released counts
  NextItemExam exam_;
  StepHistories step_;
  bool changed_ = false;
};

// The charge of a period to each unit in it.
privacy::Charge RankedPeriodCharge(const RankedLearnerOptions& options);

}  // namespace tacit::train
