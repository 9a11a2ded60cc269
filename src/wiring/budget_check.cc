#include "wiring/budget_check.h"

#include <fmt/format.h>

#include <cmath>

#include "privacy/spending.h"

namespace tacit::wiring {
namespace {

// Computed as in the ledger, at the delta of the budget in question.
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

std::vector<std::string> WeakPromises(const Assembly& assembly) {
  constexpr double kEpsilonMuch = 20, kDeltaMuch = 1e-3;
  std::vector<std::string> weak;
  const auto check = [&](const std::string& key, double epsilon, double delta) {
    if (epsilon > kEpsilonMuch && std::isfinite(epsilon))
      weak.push_back(
          fmt::format("{}epsilon: {} hides next to nothing: what is seen may be e^{} times as "
                      "likely with a record "
                      "as without it; 1 to 10 are usual",
                      key, epsilon, epsilon));
    if (delta >= kDeltaMuch)
      weak.push_back(
          fmt::format("{}delta: with {} the promise still holds where one unit in {:.0f} is "
                      "revealed whole; it should be well below one over the number of units",
                      key, delta, 1 / delta));
  };
  for (const LearnerPlan& plan : assembly.learners)
    if (std::isfinite(plan.promise.epsilon))
      check(fmt::format("learner '{}': privacy.", plan.promise.learner), plan.promise.epsilon,
            plan.promise.delta);
  if (const auto& total = assembly.total_budget) check("budget.", total->epsilon, total->delta);
  return weak;
}

}  // namespace tacit::wiring
