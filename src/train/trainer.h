#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/result.h"
#include "metrics/registry.h"
#include "store/store.h"
#include "train/feed.h"
#include "train/learner.h"
#include "train/ledger_metrics.h"
#include "train/progress.h"
#include "train/trainer_metrics.h"

namespace tacit::train {

struct TrainerOptions {
  struct Budget {
    double epsilon = 0;  // infinite for a non-private learner
    double delta = 0;
    bool exit_when_exhausted = false;
  };
  std::vector<Budget> budgets;                       // per learner
  std::optional<privacy::TotalBudget> total_budget;  // of all learners together
  std::string topic;                                 // of the source, for the ledger
  std::chrono::milliseconds commit_interval{1000};
  bool idle_priority = true;  // the training thread runs under SCHED_IDLE
  // Told after each commit, on the commit thread, what all learners that still learn are past, and
  // what is published now; may be empty.
  std::function<void(std::span<const stream::PartitionOffset>, const store::Snapshot&)> advise = {};
  // Told of a learner that takes no step any more: none need be cut for it. On Run's thread.
  std::function<void(LearnerIndex)> on_exhausted = {};
};

// Why training ended.
enum class Outcome {
  kEndOfSource,      // everything there was has been learnt and committed
  kStopped,          // asked to; what was learnt is committed
  kBudgetExhausted,  // no learner may take another step; everything before is committed
};

// Which budget a learner has come to the end of.
enum class Spent { kNone, kOwn, kTotal };

// The step loop: takes steps off the feed, asks the budget, lets the learner take the step, and
// groups what changed into commits that run behind the next step's compute. The step that would
// cross a learner's budget, or bring all learners together over the total budget, is not taken.
// Runs on the caller's thread.
class Trainer {
 public:
  // The references must outlive the trainer; one learner per LearnerIndex, in order.
  Trainer(TrainerOptions options, std::vector<std::unique_ptr<Learner>> learners,
          store::EmbeddingStore& store, const Clock& clock, metrics::Registry& registry,
          Progress& progress);
  ~Trainer();

  // Trains until the steps end. A failed commit or model ends it with the error.
  Result<Outcome> Run(BoundedQueue<LearnerStep>& steps);

  // The budget that the learner's next step would exceed, after which it stopped. Thread-safe.
  Spent spent(LearnerIndex learner) const;

  // Makes Run return soon; a step under way is abandoned. Callable from any thread.
  void RequestStop() { stopping_ = true; }

 private:
  struct Seat;  // a learner with its budget and what it has not committed yet

  Status TakeStep(LearnerStep& step);  // unless its learner is exhausted, or Run is to end
  Status Preview(Seat& seat, const stream::StepBatch& batch);
  std::vector<privacy::CommitCharge> PendingWith(const Seat& seat,
                                                 const stream::StepBatch& batch) const;
  static bool BeginsNextPeriod(const Seat& seat, const stream::StepBatch& batch);
  bool WithinBudgets(Seat& seat, std::vector<privacy::CommitCharge> charges);
  void Exhaust(Seat& seat, Spent spent, const std::string& why);
  void Predicted(const Seat& seat, const stream::StepBatch& batch, const StepReport& report);
  void Record(Seat& seat, const stream::StepBatch& batch, const StepReport& report, double seconds);
  Status CommitPending();
  void Published();
  // What all learners that still learn are past, once what is pending is committed.
  std::vector<stream::PartitionOffset> Reached() const;
  bool AllExhausted() const;

  TrainerOptions options_;
  std::vector<std::unique_ptr<Seat>> seats_;
  store::EmbeddingStore& store_;
  const Clock& clock_;
  Progress& progress_;
  TrainerMetrics metrics_;
  LedgerMetrics ledger_metrics_;
  std::string source_identity_;
  Clock::TimePoint last_commit_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace tacit::train
