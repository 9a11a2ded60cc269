#include "wiring/ledger_forecast.h"

#include <algorithm>
#include <limits>

#include "train/quality/breaker.h"
#include "train/quality/private_quality.h"
#include "wiring/budget_check.h"
#include "wiring/plans/use_limits.h"

namespace tacit::wiring {

void TakeBudgetsOf(const Assembly& assembly, ForecastBudgets* budgets) {
  const config::Config& config = assembly.config;
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
  for (const LearnerPlan& plan : assembly.learners) budgets->first_steps[plan.id] = FirstStep(plan);
  if (config.budget.given())
    budgets->total = {.epsilon = *config.budget.epsilon, .delta = *config.budget.delta};
}

namespace {

// Returns true if the total has room for one more step of growths[at]: the first one may have to be
// known from a configuration.
bool HasRoom(std::span<const privacy::Growth> growths, size_t at, const ForecastBudgets& budgets) {
  if (!budgets.total) return true;
  privacy::Spending sum;
  for (size_t i = 0; i < growths.size(); ++i)
    sum.Add(i == at ? growths[i].AfterOneMore() : growths[i].now());
  const auto first = budgets.first_steps.find(budgets.learners[at].learner);
  if (growths[at].kind() == privacy::Growth::Kind::kNothing && first != budgets.first_steps.end())
    sum.Add(first->second);
  const Delta delta(budgets.total->delta);
  return !sum.bounded() ||
         privacy::EpsilonMeter().Bounds(sum, delta).upper <= budgets.total->epsilon;
}

// Accounts of counts take no steps.
bool TakesSteps(const std::string& account, const ForecastBudgets& budgets) {
  return account != train::kBreakerAccount &&
         std::ranges::none_of(budgets.learners, [&](const privacy::Promise& promise) {
           return account == train::QualityAccount(promise.learner);
         });
}

// Stops the learners whose next step the total has no room for, and returns the growths as they
// will be.
std::vector<privacy::Growth> StopByTotal(const std::vector<privacy::Growth>& growths,
                                         const ForecastBudgets& budgets,
                                         std::vector<BudgetForecast>* forecasts) {
  std::vector<privacy::Growth> ahead = growths;
  for (size_t i = 0; i < growths.size(); ++i) {
    BudgetForecast& one = (*forecasts)[i];
    using enum privacy::Spent;
    if (one.stopped_by == kNone && !HasRoom(growths, i, budgets)) one.stopped_by = kTotal;
    if (one.stopped_by == kNone) continue;
    one.forecast.kind = privacy::Forecast::Kind::kExhausted;
    ahead[i] = growths[i].AtRest();
  }
  return ahead;
}

}  // namespace

std::vector<BudgetForecast> ForetellBudgets(std::span<const privacy::LedgerEntry> entries,
                                            const ForecastBudgets& budgets) {
  using enum privacy::Spent;
  std::vector<BudgetForecast> forecasts;
  std::vector<privacy::Growth> growths;
  std::optional<privacy::Spending> most_of_all = privacy::Spending();
  for (const privacy::Promise& promise : budgets.learners) {
    growths.push_back(privacy::Growth::Of(entries, promise.learner));
    const auto limits = budgets.limits.find(promise.learner);
    const auto most = limits == budgets.limits.end()
                          ? std::nullopt
                          : privacy::MostEver(entries, promise.learner, limits->second);
    const privacy::Forecast forecast = privacy::Foretell(
        {&growths.back(), 1}, {.epsilon = promise.epsilon, .delta = promise.delta}, most);
    const auto told = budgets.stopped.find(promise.learner);
    const bool spent = forecast.kind == privacy::Forecast::Kind::kExhausted;
    forecasts.push_back({promise.learner, promise.unit, forecast,
                         told != budgets.stopped.end() ? told->second
                         : spent                       ? kOwn
                                                       : kNone});
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
  const auto ahead = StopByTotal(growths, budgets, &forecasts);
  privacy::Forecast all = privacy::Foretell(ahead, total, most_of_all);
  const auto by_total = [](const BudgetForecast& one) { return one.stopped_by == kTotal; };
  const auto learns = [&](const BudgetForecast& one) {
    return one.stopped_by == kNone && TakesSteps(one.learner, budgets);
  };
  if (std::ranges::any_of(forecasts, by_total) && std::ranges::none_of(forecasts, learns))
    all.kind = privacy::Forecast::Kind::kExhausted;
  // A learner without a step stands still since the last commit of the others.
  for (BudgetForecast& one : forecasts)
    if (by_total(one) && one.forecast.end_ms == 0)
      one.forecast.begin_ms = one.forecast.end_ms = all.end_ms;
  forecasts.push_back({"", of_users ? privacy::Unit::kUser : privacy::Unit::kEvent, all});
  return forecasts;
}

}  // namespace tacit::wiring
