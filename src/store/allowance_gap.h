#pragma once

#include <cstdint>

#include "base/siphash.h"
#include "base/user_uses.h"

namespace tacit::store {

// The steps that commits which were lost may have counted users in, on top of what a restored copy
// has.
struct UsersGap {
  uint32_t steps = 0;   // that one user can have been in, at most
  uint32_t most = 0;    // the most steps that any user had used in the end
  uint64_t period = 0;  // the period that was unfinished in the end
};
// The most that such a user can have used in the end.
UserUses AfterGap(UserUses uses, const UsersGap& gap);

// A user with the steps of a gap that it can have been in.
struct UserSteps {
  Hash128 user;
  uint32_t steps = 0;
};

}  // namespace tacit::store
