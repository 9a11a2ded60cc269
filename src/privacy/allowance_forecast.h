#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/user_uses.h"
#include "privacy/charge.h"

// Tells how many users of a learner have how much of their allowance left, and foretells when they
// will have none. All of it depends on the users' records and carries no noise: operator-only.
namespace tacit::privacy {

// The users of a learner by what they have left.
struct AllowancesLeft {
  uint64_t users = 0;
  uint64_t none = 0;  // too little is left for one more step, or period where it is held
  // The others, by the quarter of the allowance that is left: [0] up to a quarter, ...
  std::array<uint64_t, 4> quarters{};

  double share_without() const {
    return users == 0 ? 0 : static_cast<double>(none) / static_cast<double>(users);
  }
};

// REQUIRES bounds.allowance > 0.
AllowancesLeft CountLeft(const UsersByUses& by_used, const Bounds& bounds);

// From `at_ms` on, this share of the users who are known cannot be learnt from.
struct UsersGone {
  double share = 0;
  int64_t at_ms = 0;
};

// Foretells when a tenth, a quarter, a half and nine tenths of the users will be without, those
// that are not yet past. Each user goes on at the mean pace that he had from begin_ms (the
// learner's first step) to end_ms; who came later than begin_ms is faster than that. Nobody new is
// foreseen. Shares that are not reached within a hundred years are left out, as are all if no time
// has passed.
std::vector<UsersGone> ForetellGone(const UsersByUses& by_used, const Bounds& bounds,
                                    int64_t begin_ms, int64_t end_ms);

}  // namespace tacit::privacy
