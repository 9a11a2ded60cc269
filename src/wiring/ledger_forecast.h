#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "privacy/forecast.h"
#include "privacy/ledger.h"

// Forecasts the day on which each budget of a ledger runs out.
namespace tacit::wiring {

// The budgets to forecast, and what bounds the use of a record.
struct ForecastBudgets {
  std::vector<privacy::Promise> learners;
  std::optional<privacy::TotalBudget> total;
  double total_delta = 0;  // of the joint epsilon, where there is no total
  std::map<std::string, privacy::UseLimits> limits = {};  // by learner; of a configuration alone
};

// Takes budgets and limits of this configuration over those there are.
void TakeBudgetsOf(const config::Config& config, ForecastBudgets* budgets);

struct BudgetForecast {
  std::string learner;  // "": all learners together
  privacy::Unit unit = privacy::Unit::kEvent;
  privacy::Forecast forecast;
  bool stopped_by_all = false;  // exhausted because the budget of all together has no more room
};

// Forecasts each learner's budget, and behind them that of all together; nothing without learners.
// REQUIRES entries that verify.
std::vector<BudgetForecast> ForetellBudgets(std::span<const privacy::LedgerEntry> entries,
                                            const ForecastBudgets& budgets);

}  // namespace tacit::wiring
