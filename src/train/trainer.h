#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/threads/bounded_queue.h"
#include "base/threads/heartbeat.h"
#include "base/threads/mutex.h"
#include "metrics/registry.h"
#include "privacy/bill.h"
#include "privacy/spent.h"
#include "store/committer.h"
#include "train/intake.h"
#include "train/learner/learner.h"
#include "train/learner/step_totals.h"
#include "train/ledger_metrics.h"
#include "train/progress.h"
#include "train/quality/breaker.h"
#include "train/quality/private_quality.h"
#include "train/trainer_metrics.h"

namespace tacit::train {

struct TrainerOptions {
  struct Budget {
    double epsilon = 0;  // infinite for a non-private learner
    double delta = 0;
    bool of_users = false;  // the unit is a user
  };
  std::vector<Budget> budgets;                       // per learner
  std::optional<privacy::TotalBudget> total_budget;  // for all learners together
  std::string topic;                                 // the source's, for the ledger
  std::chrono::milliseconds commit_interval{1000};
  // A period is committed as soon as all its learners have taken it: other processes wait for their
  // models.
  bool commit_each_period = false;
  bool idle_priority = true;  // the training thread runs under SCHED_IDLE
  // The stream has ends of files, at which learners are compared with their baselines; else they
  // are compared by stretches of it.
  bool has_days = true;
  // Called after each commit, on the commit thread, with the offsets that all learners still
  // learning have passed and the published snapshot; may be empty.
  std::function<void(std::span<const stream::PartitionOffset>, const store::Snapshot&)> advise = {};
  // Called on the commit thread after each commit is published; may be empty.
  std::function<void()> on_published = {};
  // Called on Run's thread when a learner stops for good: no more steps need be cut for it.
  std::function<void(LearnerIndex)> on_exhausted = {};
  std::unique_ptr<Breaker> breaker = nullptr;  // null if there is none
  // Per learner, null for one without; if empty, none has one. REQUIRES click models that learn
  // once from each record of a pass.
  std::vector<std::unique_ptr<PrivateQuality>> qualities = {};
};

// The reason that training ended.
enum class Outcome {
  kEndOfSource,      // all records have been learnt from and committed
  kStopped,          // on request; everything learnt is committed
  kBudgetExhausted,  // no learner may take another step; everything before is committed
  kHalted,           // by the breaker, now or in an earlier run; everything before is committed
};

// A learner that goes on from the store's last commit.
struct ResumedLearner {
  std::unique_ptr<Learner> learner;  // with its released state loaded, if it has one
  stream::Position position = {};    // as of that commit
  privacy::Spent spent =
      privacy::Spent::kNone;  // a budget without room for any step that it could take next
};

// The step loop: takes steps off the intake, checks the budget, lets the learner take the step, and
// groups changes into commits that run while the next step computes. A step is not taken if it
// would exceed its learner's budget, or the total budget of all learners. Runs on the caller's
// thread.
class Trainer {
 public:
  // The references must outlive the trainer; one learner per LearnerIndex, in order.
  Trainer(TrainerOptions options, std::vector<ResumedLearner> learners, store::Committer& store,
          const Clock& clock, metrics::Registry& registry, Progress& progress);
  ~Trainer();

  // Trains until the steps end. A failed commit or model ends it with the error. So does a model
  // whose numbers overflow (kInvalidArgument: a restart with the same options would do the same).
  // That model is not committed. Its steps since the last commit are skipped but charged, because
  // reporting the failure reveals a function of what they released.
  Result<Outcome> Run(BoundedQueue<LearnerStep>& steps);

  // Predicts held-out steps until they end, after Run: nothing is learnt, committed or charged, and
  // a learner whose budget is spent predicts too.
  Status Predict(BoundedQueue<LearnerStep>& steps);

  // The budget that the learner's next step would have exceeded, once it has stopped. Thread-safe.
  privacy::Spent spent(LearnerIndex learner) const;

  // Says to operators why the breaker halted, once that is committed; "" while it has not.
  // Thread-safe.
  std::string why_halted() const;

  // The time and the work of all steps so far. Thread-safe.
  StepTotals::View step_totals() const { return totals_.view(); }

  // Works while a step or a commit is under way, rests while Run waits for one.
  const Heartbeat& heartbeat() const { return heartbeat_; }

  // Makes Run return soon; abandons a step under way. Callable from any thread.
  void RequestStop() { stopping_ = true; }

 private:
  struct Seat;  // a learner with its budget and what it has not committed yet

  Result<Outcome> TrainOn(BoundedQueue<LearnerStep>& steps);
  Learner* Announce(const LearnerStep* next);
  Status TakeStep(LearnerStep& step);  // skipped if the learner is exhausted or Run is ending
  Status Preview(Seat& seat, const stream::StepBatch& batch);
  Status TakeSums(Seat& seat, const stream::StepBatch& batch);
  // Tells whether no learner has still to take the period of a step that was taken.
  bool EndsPeriod(const LearnerStep& step) const;
  static privacy::Bill PendingWith(const Seat& seat, const stream::StepBatch& batch);
  bool WithinBudgets(Seat& seat, std::vector<privacy::CommitCharge> charges);
  void AddPendingOfOthers(const void* own, std::vector<privacy::CommitCharge>* charges) const;
  bool MayRelease(const void* own, double epsilon,
                  std::vector<privacy::CommitCharge> charges) const;
  PrivateQuality* QualityOf(const Seat& seat) const;
  void SeeQuality(const Seat& seat, const stream::StepBatch& batch, const StepReport& report);
  void EndWindow(const LearnerStep& step);
  void ShowHalt();
  bool halted() const { return options_.breaker != nullptr && options_.breaker->halted(); }
  void Exhaust(Seat& seat, privacy::Spent spent, const std::string& why);
  void ShowExhausted(Seat& seat, privacy::Spent spent, const std::string& message);
  void Predicted(Seat& seat, const stream::StepBatch& batch, const StepReport& report);
  void Judge(Seat& seat);
  void Record(Seat& seat, const stream::StepBatch& batch, const StepReport& report,
              StepTotals::Phases seconds);
  store::LearnerCommit TakePending(Seat& seat);
  Status CommitPending();
  Status HandOver();
  void Published(std::optional<int64_t> committed_ms = std::nullopt);
  // The offsets that all learners still learning have passed once the pending work is committed.
  std::vector<stream::PartitionOffset> Reached() const;
  bool AllExhausted() const;

  TrainerOptions options_;
  std::vector<std::unique_ptr<Seat>> seats_;
  store::Committer& store_;
  const Clock& clock_;
  Progress& progress_;
  TrainerMetrics metrics_;
  LedgerMetrics ledger_metrics_;
  StepTotals totals_;
  metrics::Gauge halted_gauge_;
  metrics::Counter incomparable_;  // sums of workers that a check could not be made of
  std::string source_identity_;
  mutable Mutex halt_mutex_;
  std::string why_halted_ TACIT_GUARDED_BY(halt_mutex_);
  bool told_of_short_ = false, told_of_undecided_ = false, told_of_unreleased_ = false;
  Clock::TimePoint last_commit_;
  std::atomic<bool> stopping_ = false;
  Heartbeat heartbeat_;
};

}  // namespace tacit::train
