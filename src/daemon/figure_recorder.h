#pragma once

#include <memory>

#include "base/clock.h"
#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "daemon/allowance_census.h"
#include "daemon/sample_rings.h"
#include "serve/routes/figures.h"
#include "store/store.h"
#include "stream/source.h"
#include "train/progress.h"
#include "wiring/assembly.h"
#include "wiring/learning.h"

namespace tacit::daemon {

// Records what the dashboard shows of a running process beside its ledger: a thread of its own
// looks at the process's counters every two seconds. All of it is un-noised: operator-only.
// Thread-safe; what it looks at outlives it.
class FigureRecorder {
 public:
  FigureRecorder(const wiring::Assembly& assembly, wiring::Learning& learning,
                 const train::Progress& progress, const stream::Source& source,
                 const store::Store& store, const AllowanceCensus& census, const Clock& clock);

  serve::OperatorFigures Figures(serve::LookBack back) const;

 private:
  serve::StreamSample Sample() const;
  serve::LearnerFigures OfLearner(const wiring::LearnerPlan& plan,
                                  const train::StepTotals::Learner& steps) const;
  void Record();

  const wiring::Assembly& assembly_;
  wiring::Learning& learning_;
  const train::Progress& progress_;
  const stream::Source& source_;
  const store::Store& store_;
  const AllowanceCensus& census_;
  const Clock& clock_;
  mutable Mutex mutex_;
  SampleRings rings_ TACIT_GUARDED_BY(mutex_);
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::daemon
