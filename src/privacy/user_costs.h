#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "privacy/charge.h"
#include "privacy/spending.h"

namespace tacit::privacy {

// The cost of a learner's steps to the user with the highest cost. The users of a step are not on
// record, but each user's number of steps is limited (Bounds::allowance). So the worst user was in
// the most expensive steps ever taken, as many as the allowance permits. If the allowance has
// changed, the largest counts: users are counted through all changes.
class UserCosts {
 public:
  // Applies an allowance that is or was in force.
  void Bound(const Bounds& bounds);
  void Add(const Charge& charge, uint64_t steps);
  // True if the number of steps was ever unlimited.
  bool unbounded() const { return allowance_ == 0; }

  // An upper bound of any user's spending, exact if all steps are unsampled Gaussians. Otherwise
  // each kind of step counts as often as it was taken and the allowance permits, as if the other
  // kinds used none of the allowance.
  Spending Worst() const;

 private:
  bool declared_ = false;
  uint64_t allowance_ = 0;     // the largest; 0: none
  uint64_t period_steps_ = 0;  // fewest steps counted for a period; 0: there are no periods
  std::vector<std::pair<Charge, uint64_t>> steps_;  // steps by charge
};

}  // namespace tacit::privacy
