#pragma once

#include <cstdint>
#include <vector>

#include "base/threads/mutex.h"
#include "base/user_uses.h"
#include "store/rows/working_rows.h"
#include "train/learner/learner.h"

namespace tacit::train {

// The trainer's time by phase of a step, and what the steps touched, since the process began. Each
// step adds to it; any thread reads it. Un-noised: operator-only. Thread-safe.
class StepTotals {
 public:
  // Seconds of the phases of a learner's steps.
  struct Phases {
    double account = 0;  // asking the budgets
    double learn = 0;    // the learner's own work: predict, sums, noise, update
    double observe = 0;  // predictions and figures, after the step
  };
  struct Learner {
    Phases seconds;
    uint64_t steps = 0, examples = 0, units = 0, units_clipped = 0;
    UsersCame came;
    uint64_t rows_touched = 0, rows_written = 0;
    store::WorkingRows::Stats cache = {};
  };
  struct View {
    double wait_seconds = 0;    // for steps that the source had not given yet
    double commit_seconds = 0;  // in which training stood still for a commit
    uint64_t steps_queued = 0;  // ready for training
    std::vector<Learner> learners;
  };

  explicit StepTotals(size_t learners) { view_.learners.resize(learners); }

  void AddStep(size_t learner, const Phases& seconds, const StepReport& report, uint64_t units,
               const UsersCame& came, const store::WorkingRows::Stats& cache) {
    const MutexLock lock(mutex_);
    Learner& to = view_.learners[learner];
    to.seconds.account += seconds.account;
    to.seconds.learn += seconds.learn;
    to.seconds.observe += seconds.observe;
    ++to.steps;
    to.examples += report.examples;
    to.units += units;
    to.units_clipped += report.units_clipped;
    to.came.Add(came);
    to.rows_touched += report.rows_touched;
    to.rows_written += report.rows_written;
    to.cache = cache;
  }
  // The learner's work on records that a later step learns from.
  void AddPreview(size_t learner, double seconds) {
    const MutexLock lock(mutex_);
    view_.learners[learner].seconds.learn += seconds;
  }
  void AddWait(double seconds, uint64_t steps_queued) {
    const MutexLock lock(mutex_);
    view_.wait_seconds += seconds;
    view_.steps_queued = steps_queued;
  }
  void AddCommit(double seconds) {
    const MutexLock lock(mutex_);
    view_.commit_seconds += seconds;
  }
  View view() const {
    const MutexLock lock(mutex_);
    return view_;
  }

 private:
  mutable Mutex mutex_;
  View view_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::train
