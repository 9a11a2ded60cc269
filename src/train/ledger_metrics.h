#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metrics/registry.h"
#include "privacy/ledger.h"
#include "store/snapshot.h"

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

  void Show(const store::Snapshot& snapshot);

 private:
  struct PerLearner {
    std::string id;
    metrics::Gauge epsilon, steps_committed;
  };
  std::vector<PerLearner> learners_;
  metrics::Gauge total_epsilon_, total_delta_, commits_;
};

}  // namespace tacit::train
