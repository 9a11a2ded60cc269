#include "app/budget_check.h"

#include <fmt/format.h>

#include "privacy/spending.h"

namespace tacit::app {
namespace {

// As the ledger reckons it, at the delta of the budget that is asked.
double FirstStepEpsilon(const LearnerPlan& plan, double delta) {
  privacy::Spending spending = privacy::Spending::Of(plan.charge, 1);
  if (plan.opening_charge) spending.Add(privacy::Spending::Of(*plan.opening_charge, 1));
  return privacy::EpsilonMeter().Bounds(spending, Delta(delta)).upper;
}

}  // namespace

std::vector<std::string> FirstStepsRefused(const Assembly& assembly) {
  std::vector<std::string> refused;
  for (const LearnerPlan& plan : assembly.learners) {
    const privacy::Promise& promise = plan.promise;
    const auto check = [&](const std::string& key, double epsilon, double delta) {
      const double step = FirstStepEpsilon(plan, delta);
      if (step <= epsilon) return;
      refused.push_back(
          fmt::format("{}: {} is less than the epsilon of {:.4g} at delta {} that the first step "
                      "of learner '{}' costs: not one step can be taken",
                      key, epsilon, step, delta, promise.learner));
    };
    check(fmt::format("learner '{}': privacy.epsilon", promise.learner), promise.epsilon,
          promise.delta);
    if (const auto& total = assembly.total_budget)
      check("budget.epsilon", total->epsilon, total->delta);
  }
  return refused;
}

std::vector<std::string> BudgetsBelowSpent(const Assembly& assembly,
                                           const store::Snapshot& snapshot) {
  std::vector<std::string> below;
  const auto check = [&](const std::string& key, double epsilon, const privacy::LedgerTotal& spent,
                         std::string_view who) {
    if (spent.epsilon <= epsilon) return;
    below.push_back(fmt::format(
        "{}: {} is less than the epsilon of {:.4g} at delta {} that {} spent already, and nothing "
        "gives that back: not one step more is taken",
        key, epsilon, spent.epsilon, spent.delta, who));
  };
  for (const LearnerPlan& plan : assembly.learners)
    for (const privacy::LedgerTotal& spent : snapshot.learners())
      if (spent.learner == plan.promise.learner)
        check(fmt::format("learner '{}': privacy.epsilon", spent.learner), plan.promise.epsilon,
              spent, "it has");
  if (const auto& total = assembly.total_budget)
    check("budget.epsilon", total->epsilon, snapshot.total(), "all learners together have");
  return below;
}

}  // namespace tacit::app
