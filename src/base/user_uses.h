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

// The users who came for a step or a period, with their records, and those of them who are left out
// because their allowance is used. Un-noised: operator-only.
struct UsersCame {
  uint64_t users = 0, users_left_out = 0;
  uint64_t records = 0, records_left_out = 0;

  void Add(const UsersCame& more) {
    users += more.users;
    users_left_out += more.users_left_out;
    records += more.records;
    records_left_out += more.records_left_out;
  }
};

// The number of users by the number of steps that they have used. Un-noised: operator-only.
using UsersByUses = std::map<uint32_t, uint64_t>;

}  // namespace tacit
