#include "privacy/user_costs.h"

#include <algorithm>

#include "privacy/query_table.h"

namespace tacit::privacy {
namespace {

bool IsPlainGaussian(const Charge& charge) {
  return charge.sampling_rate >= 1 && charge.zcdp_rho == 0;
}

}  // namespace

void UserCosts::Bound(const Bounds& bounds) {
  const bool first = !std::exchange(declared_, true);
  const bool none = bounds.allowance == 0 || (!first && allowance_ == 0);
  allowance_ = none ? 0 : std::max(allowance_, bounds.allowance);
  if (bounds.period_steps > 0)
    period_steps_ =
        period_steps_ == 0 ? bounds.period_steps : std::min(period_steps_, bounds.period_steps);
}

void UserCosts::Add(const Charge& charge, uint64_t steps) {
  if (steps == 0) return;
  const auto known = std::find_if(steps_.begin(), steps_.end(),
                                  [&](const auto& one) { return one.first == charge; });
  if (known != steps_.end()) {
    known->second += steps;
  } else {
    steps_.emplace_back(charge, steps);
  }
}

Spending UserCosts::Worst() const {
  const uint64_t most = unbounded() ? ~uint64_t{0} : allowance_;
  // A period is opened once, so this is a user's number of periods.
  const uint64_t periods = period_steps_ == 0 ? most : most / period_steps_;
  Spending worst;
  std::vector<std::pair<Charge, uint64_t>> gaussians;
  for (const auto& [charge, steps] : steps_) {
    const bool release = IsOfPeriod(charge);
    if (!release && IsPlainGaussian(charge)) {
      gaussians.emplace_back(charge, steps);
    } else {
      worst.Add(Spending::Of(charge, std::min(steps, release ? periods : most)));
    }
  }
  std::stable_sort(gaussians.begin(), gaussians.end(), [](const auto& a, const auto& b) {
    return a.first.MuSquared() > b.first.MuSquared();
  });
  uint64_t left = most;
  for (const auto& [charge, steps] : gaussians) {
    const uint64_t taken = std::min(left, steps);
    worst.Add(Spending::Of(charge, taken));
    left -= taken;
  }
  return worst;
}

}  // namespace tacit::privacy
