#include "daemon/budget_outlook.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/files/log.h"
#include "metrics/families.h"

namespace tacit::daemon {
namespace {

using privacy::Forecast;
constexpr std::chrono::seconds kLookPause(60);
constexpr uint64_t kEntriesAtOnce = 4096;

// Unix time, in seconds: +Inf where no end is in sight, and NaN where nothing can be said.
double RunsOutAt(const Forecast& forecast) {
  switch (forecast.kind) {
    case Forecast::Kind::kNothingSpent:
    case Forecast::Kind::kTooLittleHistory:
      return NAN;
    case Forecast::Kind::kExhausted:
      return static_cast<double>(forecast.end_ms) / 1000;
    case Forecast::Kind::kRunsOut:
      return static_cast<double>(forecast.runs_out_ms) / 1000;
    case Forecast::Kind::kNoBudget:
    case Forecast::Kind::kConstant:
    case Forecast::Kind::kBounded:
    case Forecast::Kind::kBeyondHorizon:
      return INFINITY;
  }
  return NAN;
}

Result<std::vector<privacy::LedgerEntry>> ReadEntries(const store::Snapshot& snapshot) {
  std::vector<privacy::LedgerEntry> entries;
  while (entries.size() < snapshot.ledger_entries()) {
    TACIT_ASSIGN(const std::vector<std::string> page,
                 snapshot.LedgerEntries(entries.size(), kEntriesAtOnce));
    if (page.empty()) return Fail(ErrorCode::kCorruption, "the ledger ends before its head");
    for (const std::string& bytes : page) {
      TACIT_ASSIGN(privacy::LedgerEntry entry, privacy::LedgerEntry::Decode(bytes));
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

}  // namespace

BudgetOutlook::BudgetOutlook(const wiring::Assembly& assembly, Latest latest,
                             metrics::Registry& registry)
    : latest_(std::move(latest)) {
  for (const wiring::LearnerPlan& plan : assembly.learners) {
    budgets_.learners.push_back(plan.promise);
    budgets_.total_delta = std::max(budgets_.total_delta, plan.promise.delta);
  }
  for (const wiring::QualityPlan& plan : assembly.qualities)
    budgets_.learners.push_back(plan.promise);
  if (assembly.breaker) budgets_.learners.push_back(assembly.breaker->promise);
  wiring::TakeBudgetsOf(assembly, &budgets_);
  for (const privacy::Promise& promise : budgets_.learners)
    runs_out_.emplace_back(promise.learner,
                           registry.AddGauge("tacit_privacy_budget_runs_out_timestamp_seconds",
                                             {{"learner", promise.learner}}));
  if (budgets_.total)
    runs_out_.emplace_back(
        "", registry.AddGauge("tacit_privacy_total_budget_runs_out_timestamp_seconds"));
  for (const auto& [learner, gauge] : runs_out_) gauge.Set(NAN);
  thread_.Start("tacit-outlook", [this] {
    do Look();
    while (thread_.Rest(kLookPause));
  });
}

void BudgetOutlook::Look() {
  const auto snapshot = latest_();
  if (snapshot->version().value == version_) return;
  version_ = snapshot->version().value;
  const auto entries = ReadEntries(*snapshot);
  if (!entries) {
    spdlog::warn("the ledger cannot be read for a forecast: {}", entries.error().message);
    return;
  }
  const auto forecasts = wiring::ForetellBudgets(*entries, budgets_);
  for (const auto& [learner, gauge] : runs_out_) {
    const auto own = std::ranges::find(forecasts, learner, &wiring::BudgetForecast::learner);
    if (own != forecasts.end()) gauge.Set(RunsOutAt(own->forecast));
  }
}

}  // namespace tacit::daemon
