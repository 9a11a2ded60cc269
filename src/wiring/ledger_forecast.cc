#include "wiring/ledger_forecast.h"

#include <algorithm>
#include <limits>

#include "train/quality/breaker.h"
#include "train/quality/private_quality.h"
#include "wiring/plans/use_limits.h"

namespace tacit::wiring {

void TakeBudgetsOf(const config::Config& config, ForecastBudgets* budgets) {
  const auto promise = [&](const std::string& name, double epsilon) {
    for (privacy::Promise& one : budgets->learners)
      if (one.learner == name) one.epsilon = epsilon;
  };
  for (const config::Learner& learner : config.learners) {
    promise(learner.id, learner.privacy.epsilon);
    if (learner.quality.given())
      promise(train::QualityAccount(learner.id), *learner.quality.epsilon);
  }
  if (const config::HaltAbove& halt = config.source.halt_above; halt.given())
    promise(std::string(train::kBreakerAccount), *halt.epsilon);
  for (const auto& [account, limits] : LimitsByAccount(config)) budgets->limits[account] = limits;
  if (config.budget.given())
    budgets->total = {.epsilon = *config.budget.epsilon, .delta = *config.budget.delta};
}

std::vector<BudgetForecast> ForetellBudgets(std::span<const privacy::LedgerEntry> entries,
                                            const ForecastBudgets& budgets) {
  std::vector<BudgetForecast> forecasts;
  std::vector<privacy::Growth> growths;
  std::optional<privacy::Spending> most_of_all = privacy::Spending();
  for (const privacy::Promise& promise : budgets.learners) {
    growths.push_back(privacy::Growth::Of(entries, promise.learner));
    const auto limits = budgets.limits.find(promise.learner);
    const auto most = limits == budgets.limits.end()
                          ? std::nullopt
                          : privacy::MostEver(entries, promise.learner, limits->second);
    forecasts.push_back(
        {promise.learner, promise.unit,
         privacy::Foretell({&growths.back(), 1},
                           {.epsilon = promise.epsilon, .delta = promise.delta}, most)});
    if (most && most_of_all)
      most_of_all->Add(*most);
    else
      most_of_all.reset();
  }
  if (growths.empty()) return forecasts;
  const double none = std::numeric_limits<double>::infinity();
  const privacy::TotalBudget total =
      budgets.total.value_or(privacy::TotalBudget{none, budgets.total_delta});
  const bool of_users = std::ranges::all_of(budgets.learners, [](const privacy::Promise& promise) {
    return promise.unit == privacy::Unit::kUser;
  });
  const privacy::Forecast all = privacy::Foretell(growths, total, most_of_all);
  using enum privacy::Forecast::Kind;
  if (all.kind == kExhausted) {
    for (BudgetForecast& one : forecasts) {
      one.stopped_by_all = one.forecast.kind != kExhausted;
      one.forecast.kind = kExhausted;
    }
  }
  forecasts.push_back({"", of_users ? privacy::Unit::kUser : privacy::Unit::kEvent, all});
  return forecasts;
}

}  // namespace tacit::wiring
