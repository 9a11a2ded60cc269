#pragma once

#include <memory>
#include <string>
#include <vector>

#include "metrics/registry.h"
#include "store/store.h"
#include "train/learner.h"
#include "train/progress.h"

namespace tacit::train {

// Prometheus metrics of training beside LedgerMetrics. Those from raw records or uncommitted work,
// timings included, are for the operator.
class TrainerMetrics {
 public:
  // `progress` must live as long as the registry is asked.
  TrainerMetrics(metrics::Registry& registry, const std::vector<std::string>& learners,
                 const Progress& progress);

  void Step(size_t learner, const StepReport& report, uint64_t units_refused, double seconds);
  void Stored(const store::Store::Stats& stats);
  void Exhausted(size_t learner);
  // `steps` steps are ready for training; `waited`: training had to wait for the one it takes now.
  void Queued(size_t steps, bool waited);

 private:
  struct PerLearner {
    metrics::Gauge exhausted;                                                           // public
    metrics::Counter events, rows_touched, rows_written, units_clipped, units_refused;  // operator
    metrics::Gauge loss;
    metrics::Histogram step_seconds;
  };
  std::vector<PerLearner> learners_;
  metrics::Gauge commit_seconds_, unfolded_deltas_, queued_;  // operator
  metrics::Counter waits_;                                    // operator
  metrics::Counter witnesses_lost_;                           // operator
  uint64_t witnesses_lost_before_ = 0;
};

}  // namespace tacit::train
