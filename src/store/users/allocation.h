#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/disk/rocks.h"

// The allocations of unfinished periods, per learner: which units are in which step. As secret as
// records, so that they have a key of their own, which no delta, witness or release repeats.
namespace tacit::store {

// Adds a change to the batch; an empty allocation is forgotten.
void PutAllocation(const Rocks& rocks, uint16_t learner, const std::string& allocation,
                   rocksdb::WriteBatch* batch);
// Empty if there is none.
Result<std::string> ReadAllocation(const Rocks& rocks, uint16_t learner);
// Forgets all of them, synced: of a copy that cannot know which steps its original went on to take.
// Taken once more under the same allocation, a step would show its units twice.
Status ForgetAllocations(const Rocks& rocks);

}  // namespace tacit::store
