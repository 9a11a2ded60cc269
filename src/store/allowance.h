#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <span>

#include "base/result.h"
#include "store/delta.h"
#include "store/rocks.h"

// The allowances that users have used, per learner. The counts only grow and never expire, because
// a forgotten user would begin anew. They change in the commit of the steps they count.
namespace tacit::store {

// Adds a commit's counts to the batch. `learner` is its key in the store.
void PutAllowances(const Rocks& rocks, uint16_t learner, const AllowanceCommit& commit,
                   rocksdb::WriteBatch* batch);
// Fills in the uses of each of `users` and returns the step they are as of, all from one moment.
Result<uint64_t> ReadAllowances(const Rocks& rocks, uint16_t learner, std::span<UserUses> users);
// The steps that commits which were lost may have counted users in: a restore adds them to every
// user, also to those whom the restored copy does not know.
struct UsersGap {
  uint32_t steps = 0;   // of the lost commits
  uint32_t most = 0;    // the most steps that any user had used in the end
  uint64_t period = 0;  // the period that was unfinished in the end
};
// The most that such a user can have used in the end.
UserUses AfterGap(UserUses uses, const UsersGap& gap);
// Adds the gap to all counts of the learner, and to its *floor*: the uses of users without a count.
// The counts are as of `step` then. A crash leaves some of the counts changed.
Status AddGap(const Rocks& rocks, uint16_t learner, const UsersGap& gap, uint64_t step);

Result<bool> HasAllowances(const Rocks& rocks);
// The most steps that any user of the learner has used. Reads all counts.
Result<uint32_t> CountMostUses(const Rocks& rocks, uint16_t learner);

}  // namespace tacit::store
