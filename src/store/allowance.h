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
Result<bool> HasAllowances(const Rocks& rocks);
// The most steps that any user of the learner has used. Reads all counts.
Result<uint32_t> CountMostUses(const Rocks& rocks, uint16_t learner);

}  // namespace tacit::store
