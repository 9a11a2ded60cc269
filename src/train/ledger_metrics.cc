#include "train/ledger_metrics.h"

namespace tacit::train {

using metrics::Audience;

LedgerMetrics::LedgerMetrics(metrics::Registry& registry, const std::vector<Learner>& learners,
                             const std::optional<privacy::TotalBudget>& total) {
  const auto gauge = [&](const char* name, const char* help, const metrics::Labels& labels = {}) {
    return registry.AddGauge(Audience::kPublic, name, help, labels);
  };
  for (const Learner& learner : learners) {
    const metrics::Labels labels{{"learner", learner.id}};
    learners_.push_back(
        {.id = learner.id,
         .epsilon = gauge("tacit_privacy_epsilon",
                          "Epsilon of the worst unit over everything committed", labels),
         .steps_committed =
             gauge("tacit_steps_committed", "Private updates charged to the ledger", labels)});
    gauge("tacit_privacy_epsilon_budget", "Epsilon the learner may reach", labels)
        .Set(learner.epsilon_budget);
    gauge("tacit_privacy_delta", "Delta that epsilon is stated at", labels).Set(learner.delta);
  }
  total_epsilon_ = gauge("tacit_privacy_total_epsilon",
                         "Epsilon of the worst unit over all learners, everything committed");
  total_delta_ = gauge("tacit_privacy_total_delta", "Delta that the total is stated at");
  if (total)
    gauge("tacit_privacy_total_epsilon_budget", "Epsilon all learners together may reach")
        .Set(total->epsilon);
  commits_ = gauge("tacit_commits", "Commits made durable");
}

void LedgerMetrics::Show(const store::Snapshot& snapshot) {
  for (const PerLearner& learner : learners_) {
    for (const privacy::LedgerTotal& spent : snapshot.learners()) {
      if (spent.learner != learner.id) continue;
      learner.epsilon.Set(spent.epsilon);
      learner.steps_committed.Set(static_cast<double>(spent.steps));
    }
  }
  total_epsilon_.Set(snapshot.total().epsilon);
  total_delta_.Set(snapshot.total().delta);
  commits_.Set(static_cast<double>(snapshot.version().value));
}

}  // namespace tacit::train
