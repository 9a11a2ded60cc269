#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "privacy/ledger.h"

// Tells how a learner's spending came to be what it is, for people to see. The ledger keeps a run
// of equal steps as one entry, so the moments within a run are those of an even pace.
namespace tacit::privacy {

// The worst unit's spending after this number of the learner's steps was charged.
struct SpentMoment {
  int64_t time_ms = 0;  // UTC
  uint64_t steps = 0;
  Spending worst = {};
};

// The moments at which the learner's spending changed, and its last one, in order: about `most` of
// them. Within a run the first steps are those that cost, as many as the run's gain comes to: of
// records that are used once, the first alone; of a user's, each until the allowance is used.
// REQUIRES entries that verify.
std::vector<SpentMoment> SpentPath(std::span<const LedgerEntry> entries, std::string_view learner,
                                   size_t most);

// The spending as of a time: that of the last moment that is not later, or nothing.
Spending SpentAt(std::span<const SpentMoment> path, int64_t time_ms);

}  // namespace tacit::privacy
