#include "train/ledger_metrics.h"

#include <algorithm>
#include <cmath>

namespace tacit::train {

using metrics::Audience;

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
  const auto gauge = [&](const char* name, const char* help, const metrics::Labels& labels = {}) {
    return registry.AddGauge(Audience::kPublic, name, help, labels);
  };
  for (const Learner& learner : learners) {
    const metrics::Labels labels{{"learner", learner.id}};
    learners_.push_back(
        {.id = learner.id,
         .budget = learner.epsilon_budget,
         .epsilon = gauge("tacit_privacy_epsilon",
                          "Epsilon of the worst unit over everything committed", labels),
         .epsilon_left = gauge("tacit_privacy_epsilon_left",
                               "Epsilon of the learner's budget that is not spent", labels),
         .steps_committed = registry.AddCounter(Audience::kPublic, "tacit_steps_committed_total",
                                                "Private updates charged to the ledger", labels)});
    gauge("tacit_privacy_epsilon_budget", "Epsilon the learner may reach", labels)
        .Set(learner.epsilon_budget);
    gauge("tacit_privacy_delta", "Delta that epsilon is stated at", labels).Set(learner.delta);
  }
  total_epsilon_ = gauge("tacit_privacy_total_epsilon",
                         "Epsilon of the worst unit over all learners, everything committed");
  total_delta_ = gauge("tacit_privacy_total_delta", "Delta that the total is stated at");
  if (total) {
    total_budget_ = total->epsilon;
    gauge("tacit_privacy_total_epsilon_budget", "Epsilon all learners together may reach")
        .Set(total->epsilon);
    total_epsilon_left_ =
        gauge("tacit_privacy_total_epsilon_left", "Epsilon of the total budget that is not spent");
  }
  version_ = gauge("tacit_commit_version", "Number of the commit that is served");
  last_commit_ = gauge("tacit_last_commit_timestamp_seconds",
                       "Unix time of the commit that is served; 0: there is none yet");
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
