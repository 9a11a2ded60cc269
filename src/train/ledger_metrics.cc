#include "train/ledger_metrics.h"

#include <algorithm>
#include <cmath>

#include "metrics/families.h"

namespace tacit::train {

namespace {

// The last entries of all learners are among this many at the end of the chain.
constexpr uint64_t kLastEntries = 64;

// Unix time of the snapshot's last commit by its ledger; 0: there is none, or it cannot be read.
int64_t LastCommitMs(const store::Snapshot& snapshot) {
  const uint64_t entries = snapshot.ledger_entries();
  const uint64_t from = entries - std::min(entries, kLastEntries);
  int64_t last = 0;
  const auto read = snapshot.LedgerEntries(from, kLastEntries);
  if (!read) return last;
  for (const std::string& bytes : *read)
    if (const auto entry = privacy::LedgerEntry::Decode(bytes))
      last = std::max(last, entry->last_time_ms);
  return last;
}

// The room that a budget has left. Without a promise it has no end.
double Left(double budget, double spent) {
  return std::isfinite(budget) ? std::max(0.0, budget - spent) : budget;
}

}  // namespace

LedgerMetrics::LedgerMetrics(metrics::Registry& registry, const std::vector<Learner>& learners,
                             const std::optional<privacy::TotalBudget>& total) {
  const auto gauge = [&](metrics::GaugeName name, const metrics::Labels& labels = {}) {
    return registry.AddGauge(name, labels);
  };
  for (const Learner& learner : learners) {
    const metrics::Labels labels{{"learner", learner.id}};
    learners_.push_back(
        {.id = learner.id,
         .budget = learner.epsilon_budget,
         .epsilon = gauge("tacit_privacy_epsilon", labels),
         .epsilon_left = gauge("tacit_privacy_epsilon_left", labels),
         .steps_committed = registry.AddCounter("tacit_steps_committed_total", labels)});
    gauge("tacit_privacy_epsilon_budget", labels).Set(learner.epsilon_budget);
    gauge("tacit_privacy_delta", labels).Set(learner.delta);
  }
  total_epsilon_ = gauge("tacit_privacy_total_epsilon");
  total_delta_ = gauge("tacit_privacy_total_delta");
  if (total) {
    total_budget_ = total->epsilon;
    gauge("tacit_privacy_total_epsilon_budget").Set(total->epsilon);
    total_epsilon_left_ = gauge("tacit_privacy_total_epsilon_left");
  }
  version_ = gauge("tacit_commit_version");
  last_commit_ = gauge("tacit_last_commit_timestamp_seconds");
}

void LedgerMetrics::Show(const store::Snapshot& snapshot, std::optional<int64_t> committed_ms) {
  for (const PerLearner& learner : learners_) {
    for (const privacy::LedgerTotal& spent : snapshot.learners()) {
      if (spent.learner != learner.id) continue;
      learner.epsilon.Set(spent.epsilon);
      learner.steps_committed.RaiseTo(static_cast<double>(spent.steps));
    }
    learner.epsilon_left.Set(Left(learner.budget, learner.epsilon.value()));
  }
  total_epsilon_.Set(snapshot.total().epsilon);
  total_delta_.Set(snapshot.total().delta);
  if (total_budget_) total_epsilon_left_.Set(Left(*total_budget_, snapshot.total().epsilon));
  version_.Set(static_cast<double>(snapshot.version().value));
  last_commit_.Set(static_cast<double>(committed_ms ? *committed_ms : LastCommitMs(snapshot)) /
                   1000);
}

}  // namespace tacit::train
