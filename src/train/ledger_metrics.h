#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metrics/registry.h"
#include "privacy/ledger.h"
#include "store/types/snapshot.h"

namespace tacit::train {

// Prometheus metrics of a committed snapshot's ledger: the budget and the spending, per learner and
// in total. All of it is public. Thread-safe.
class LedgerMetrics {
 public:
  struct Learner {
    std::string id;
    double epsilon_budget = 0;
    double delta = 0;
  };
  LedgerMetrics(metrics::Registry& registry, const std::vector<Learner>& learners,
                const std::optional<privacy::TotalBudget>& total);

  // Shows a snapshot that was committed at this Unix time; without a time, when its ledger says.
  void Show(const store::Snapshot& snapshot, std::optional<int64_t> committed_ms = std::nullopt);

 private:
  struct PerLearner {
    std::string id;
    double budget = 0;
    metrics::Gauge epsilon, epsilon_left;
    metrics::Counter steps_committed;
  };
  std::vector<PerLearner> learners_;
  std::optional<double> total_budget_;
  metrics::Gauge total_epsilon_, total_epsilon_left_, total_delta_, version_, last_commit_;
};

}  // namespace tacit::train
