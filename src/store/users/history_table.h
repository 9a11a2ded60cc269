#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "store/disk/rocks.h"
#include "store/types/history.h"
#include "store/users/forgotten.h"

// Recent items per learner and user (history_value.h).
namespace tacit::store {

// Reads these users' items and writes them back with the appended ones. Drops items that are too
// old by the store's retention clock, and appends none that its user asked to have forgotten. Only
// the commit thread may call it.
Status PutHistories(const Rocks& rocks, uint16_t learner, CommitSeq seq,
                    const HistoryCommit& commit, const ForgottenUsers& forgotten,
                    rocksdb::WriteBatch* batch);
// Fills in the items of each of `users` and returns the step they are as of, all from one moment.
Result<uint64_t> ReadHistories(const Rocks& rocks, uint16_t learner, int64_t now,
                               std::span<UserHistory> users);
// A user's items as of commit `seq`. Empty if none are known.
Result<std::vector<HistoryItem>> ReadHistory(const Rocks& rocks, const rocksdb::Snapshot* snapshot,
                                             uint16_t learner, CommitSeq seq, int64_t now,
                                             const Hash128& user);

// Adds to the batch every history of the learner with the new numbers of its items. kRefused: they
// are more than one batch should hold. kCorruption: one of them is damaged, or has an item without
// a number.
Status RenumberHistories(const Rocks& rocks, uint16_t learner, std::span<const uint32_t> items,
                         rocksdb::WriteBatch* batch);

// Reads every history of the learner. kCorruption: one of them is damaged.
Status CheckHistories(const Rocks& rocks, uint16_t learner);

}  // namespace tacit::store
