#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "store/disk/rocks.h"
#include "store/types/delta.h"
#include "store/users/allowance_gap.h"

// The allowances that users have used, per learner. The counts only grow and never expire, because
// a forgotten user would begin anew. They change in the commit of the steps they count.
namespace tacit::store {

// Adds a commit's counts to the batch. `learner` is its key in the store.
void PutAllowances(const Rocks& rocks, uint16_t learner, const AllowanceCommit& commit,
                   rocksdb::WriteBatch* batch);
// Fills in the uses of each of `users` and returns the step they are as of, all from one moment.
Result<uint64_t> ReadAllowances(const Rocks& rocks, uint16_t learner, std::span<UserUses> users);
// Adds the gap to all counts of the learner, and to its *floor*: the uses of users without a count,
// so that users are charged whom the copy does not know. The counts are as of `step` then. A crash
// leaves some of the counts changed.
Status AddGap(const Rocks& rocks, uint16_t learner, const UsersGap& gap, uint64_t step);
// Adds the gap to these users alone, each with the steps that it can have been in: at most the
// gap's. No other user was in any. A crash leaves some of the counts changed.
Status AddGapOf(const Rocks& rocks, uint16_t learner, const UsersGap& gap,
                std::span<const UserSteps> users, uint64_t step);
// Takes over the counts and the floor of a later copy of the store, whose learner has the key
// `from_learner`. Counts never fall. A crash leaves some of the counts taken over.
Status TakeOverCounts(const Rocks& rocks, uint16_t learner, const Rocks& from,
                      uint16_t from_learner);

// The users that the learner has counts of. Reads all counts.
struct CountedUses {
  uint64_t users = 0;
  UsersByUses by_used;
};
// `keep`, if there is one, is asked every some thousand users; kUnavailable once it says no.
Result<CountedUses> CheckCounts(const Rocks& rocks, uint16_t learner,
                                const std::function<bool()>& keep = {});

}  // namespace tacit::store
