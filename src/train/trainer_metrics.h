#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/user_uses.h"
#include "metrics/registry.h"
#include "privacy/spent.h"
#include "store/committer.h"
#include "train/learner/learner.h"
#include "train/progress.h"

namespace tacit::train {

// Prometheus metrics of training beside LedgerMetrics. Those from raw records or uncommitted work,
// timings included, are for the operator.
class TrainerMetrics {
 public:
  // `progress` must live as long as the registry is asked.
  TrainerMetrics(metrics::Registry& registry, const std::vector<std::string>& learners,
                 const Progress& progress);

  void Step(size_t learner, const StepReport& report, const UsersCame& came, double seconds);
  // The learner's row cache, as its own thread sees it.
  void Cached(size_t learner, const store::WorkingRows::Stats& stats);
  // A commit was published; nothing new where `stats` is of no further one.
  void Stored(const store::Committer::Stats& stats);
  void Exhausted(size_t learner, privacy::Spent spent);
  // `steps` steps are ready for training, which had to wait this long for the one it takes now; 0:
  // it was there.
  void Queued(size_t steps, double waited_seconds);

 private:
  struct PerLearner {
    metrics::Gauge exhausted, total_exhausted;                           // public
    metrics::Counter events, rows_touched, rows_written, units_clipped;  // operator
    metrics::Counter users_left_out, records_left_out;                   // operator
    metrics::Gauge loss;
    metrics::Histogram step_seconds;
    std::array<metrics::Counter, kStepPhaseNames.size()> phase_seconds;
    metrics::Counter cache_hits, cache_misses, cache_read_ahead, cache_evictions;
    metrics::Gauge cache_bytes;
  };
  std::vector<PerLearner> learners_;
  // All of these are the operator's.
  metrics::Histogram commit_seconds_;
  metrics::Gauge unfolded_deltas_, queued_;
  metrics::Counter waits_, wait_seconds_, commit_bytes_, folded_rows_, witnesses_lost_;
  uint64_t commits_before_ = 0;
};

}  // namespace tacit::train
