#include "wiring/budget_check.h"

#include <fmt/format.h>

#include <cmath>

#include "privacy/weakness.h"

namespace tacit::wiring {

privacy::Spending FirstStep(const LearnerPlan& plan) {
  privacy::Spending spending = privacy::Spending::Of(plan.charge, 1);
  if (plan.opening_charge) spending.Add(privacy::Spending::Of(*plan.opening_charge, 1));
  return spending;
}

namespace {

// Computed as in the ledger, at the delta of the budget in question.
double EpsilonOf(const privacy::Spending& spending, double delta, const privacy::Laws& laws) {
  return privacy::EpsilonMeter(laws).Bounds(spending, Delta(delta)).upper;
}

// A record is counted behind the steps that it is in, so that these must leave room for that.
std::string NoWindowDecided(const Assembly& assembly, const privacy::Laws& laws) {
  if (!assembly.breaker || !assembly.total_budget) return "";
  const privacy::TotalBudget& total = *assembly.total_budget;
  privacy::Spending spending = privacy::Spending::Of(assembly.breaker->charge, 1);
  for (const LearnerPlan& plan : assembly.learners) spending.Add(FirstStep(plan));
  const double epsilon = EpsilonOf(spending, total.delta, laws);
  if (epsilon <= total.epsilon) return "";
  return fmt::format(
      "budget.epsilon: {} is less than the epsilon of {:.4g} at delta {} that a step of each "
      "learner and the count of source.halt_above cost: not one window could be decided",
      total.epsilon, epsilon, total.delta);
}

}  // namespace

std::vector<std::string> FirstStepsRefused(const Assembly& assembly, const privacy::Laws& laws) {
  std::vector<std::string> refused;
  const privacy::Laws shared = laws != nullptr ? laws : privacy::MakeLaws();
  for (const LearnerPlan& plan : assembly.learners) {
    const privacy::Promise& promise = plan.promise;
    const auto check = [&](const std::string& key, double epsilon, double delta) {
      const double step = EpsilonOf(FirstStep(plan), delta, shared);
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
  if (std::string none = NoWindowDecided(assembly, shared); !none.empty())
    refused.push_back(std::move(none));
  return refused;
}

std::vector<std::string> WeakPromises(const Assembly& assembly) {
  std::vector<std::string> weak;
  const auto check = [&](const std::string& key, double epsilon, double delta) {
    const privacy::Weakness of = privacy::WeaknessOf(epsilon, delta);
    if (!of.epsilon.empty()) weak.push_back(key + "epsilon: " + of.epsilon);
    if (!of.delta.empty()) weak.push_back(key + "delta: " + of.delta);
  };
  for (const LearnerPlan& plan : assembly.learners)
    if (std::isfinite(plan.promise.epsilon))
      check(fmt::format("learner '{}': privacy.", plan.promise.learner), plan.promise.epsilon,
            plan.promise.delta);
  for (const QualityPlan& plan : assembly.qualities)
    check(fmt::format("learner '{}': quality.", plan.learner), plan.promise.epsilon,
          plan.promise.delta);
  if (assembly.breaker)
    check("source.halt_above.", assembly.breaker->promise.epsilon, assembly.breaker->promise.delta);
  if (const auto& total = assembly.total_budget) check("budget.", total->epsilon, total->delta);
  return weak;
}

}  // namespace tacit::wiring
