#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "privacy/forecast.h"
#include "privacy/ledger.h"
#include "privacy/spent.h"
#include "wiring/assembly.h"

// Forecasts the day on which each budget of a ledger runs out.
namespace tacit::wiring {

// The budgets to forecast, and what bounds the use of a record.
struct ForecastBudgets {
  std::vector<privacy::Promise> learners;
  std::optional<privacy::TotalBudget> total;
  double total_delta = 0;  // of the joint epsilon, where there is no total
  std::map<std::string, privacy::UseLimits> limits = {};  // by learner; of a configuration alone
  std::map<std::string, privacy::Spending> first_steps = {};  // the same
  std::map<std::string, privacy::Spent> stopped = {};         // by learner, as a daemon tells
};

// Takes budgets, limits and first steps of this configuration over those there are.
void TakeBudgetsOf(const Assembly& assembly, ForecastBudgets* budgets);

struct BudgetForecast {
  std::string learner;  // "": all learners together
  privacy::Unit unit = privacy::Unit::kEvent;
  privacy::Forecast forecast;
  privacy::Spent stopped_by = privacy::Spent::kNone;  // else the forecast is kExhausted
};

// Forecasts each learner's budget, and behind them that of all together; nothing without learners.
// A learner that stands still spends nothing more of the latter, which is exhausted once it has
// stopped the last one. REQUIRES entries that verify.
std::vector<BudgetForecast> ForetellBudgets(std::span<const privacy::LedgerEntry> entries,
                                            const ForecastBudgets& budgets);

}  // namespace tacit::wiring
