#include "daemon/budget_spent.h"

#include <fmt/format.h>

namespace tacit::daemon {

std::vector<std::string> BudgetsBelowSpent(const wiring::Assembly& assembly,
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
  for (const wiring::LearnerPlan& plan : assembly.learners)
    for (const privacy::LedgerTotal& spent : snapshot.learners())
      if (spent.learner == plan.promise.learner)
        check(fmt::format("learner '{}': privacy.epsilon", spent.learner), plan.promise.epsilon,
              spent, "it has");
  if (const auto& total = assembly.total_budget)
    check("budget.epsilon", total->epsilon, snapshot.total(), "all learners together have");
  return below;
}

}  // namespace tacit::daemon
