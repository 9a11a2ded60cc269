#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "privacy/charge.h"
#include "privacy/spending.h"

namespace tacit::privacy {

// What a learner's steps have cost the user they cost most. Which users were in a step is not on
// record; how many steps a user is in at most is (Bounds::allowance). So the worst user is one who
// was in the dearest steps there ever were, as many of them as the allowance lets. Where it was
// another allowance before, the largest counts: users are counted through all of them.
class UserCosts {
 public:
  // An allowance that was in force at some time.
  void Bound(const Bounds& bounds);
  void Add(const Charge& charge, uint64_t steps);
  // Whether nothing has ever bounded the number of steps.
  bool unbounded() const { return allowance_ == 0; }

  // An upper bound of what any user has spent: exact where all steps are unsampled Gaussians;
  // otherwise each kind of step is taken as often as it was there and the allowance lets, as if the
  // others took nothing of it.
  Spending Worst() const;

 private:
  bool declared_ = false;
  uint64_t allowance_ = 0;     // the largest; 0: none
  uint64_t period_steps_ = 0;  // the least that a period was counted for; 0: there are no periods
  std::vector<std::pair<Charge, uint64_t>> steps_;  // of each charge
};

}  // namespace tacit::privacy
