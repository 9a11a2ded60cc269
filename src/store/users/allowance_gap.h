#pragma once

#include <cstdint>

#include "base/siphash.h"
#include "base/user_uses.h"

namespace tacit::store {

// The steps that commits which were lost may have counted users in, on top of what a restored copy
// has.
struct UsersGap {
  // The state in the end of the period that counts users. A held one counts them for all of its
  // steps when it opens, and has no others: a count within it says that the user is in it.
  enum class Periods {
    kRunning,  // step by step (`once`)
    kBetween,  // held, and none was open
    kOpened,   // held, and opened after the copy
    kOpen,     // held, and open in the copy
  };

  uint32_t steps = 0;      // that one user can have been in, at most
  uint32_t allowance = 0;  // the largest that was in force in these steps
  uint64_t period = 0;     // the period that was unfinished in the end, or comes next
  Periods periods = Periods::kRunning;
  uint32_t period_steps = 0;  // held periods: that a user is counted for
};
// The most that such a user can have used in the end: a function of the user's own uses and of
// public numbers, so that no user's records decide whether others are learnt from. A user is in an
// open period only if the allowance had room for all steps of the gap: then nothing refused the
// user there.
UserUses AfterGap(UserUses uses, const UsersGap& gap);

// A user with the steps of a gap that it can have been in.
struct UserSteps {
  Hash128 user;
  uint32_t steps = 0;
};

}  // namespace tacit::store
