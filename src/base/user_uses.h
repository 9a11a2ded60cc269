#pragma once

#include <cstdint>
#include <map>

#include "base/siphash.h"

namespace tacit {

// A user's used allowance with one learner; a keyed hash stands for the user.
struct UserUses {
  Hash128 user;
  uint32_t used = 0;       // steps the user was in or eligible for, ever
  uint32_t in_period = 0;  // of these, the steps in `period`
  uint64_t period = 0;     // the last period with any of them
  friend bool operator==(const UserUses&, const UserUses&) = default;
};

// The number of users by the number of steps that they have used. Un-noised: operator-only.
using UsersByUses = std::map<uint32_t, uint64_t>;

}  // namespace tacit
