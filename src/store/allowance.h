#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <span>

#include "base/result.h"
#include "store/delta.h"
#include "store/rocks.h"

// The allowances users have used, per learner: counts that only grow and have no end of life, for a
// user who is forgotten would begin anew. They change in the commit of the steps they count.
namespace tacit::store {

// `learner` is its key in the store.
void PutAllowances(const Rocks& rocks, uint16_t learner, const AllowanceCommit& commit,
                   rocksdb::WriteBatch* batch);
// Fills in what each of `users` has used and returns the step it is as of, all from one moment.
Result<uint64_t> ReadAllowances(const Rocks& rocks, uint16_t learner, std::span<UserUses> users);
Result<bool> HasAllowances(const Rocks& rocks);

}  // namespace tacit::store
