#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace tacit {

// How much of the allowance a user has used with one learner; the user under a keyed hash.
struct UserUses {
  Hash128 user;
  uint32_t used = 0;       // steps the user was in or eligible for, ever
  uint32_t in_period = 0;  // of them, in the period below
  uint64_t period = 0;     // the last one with any
  friend bool operator==(const UserUses&, const UserUses&) = default;
};

}  // namespace tacit
