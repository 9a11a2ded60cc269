#pragma once

#include <rocksdb/compaction_filter.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/history.h"
#include "store/rocks.h"

// Recent items per learner and user. A value tells which commit changed it last and how many items
// that one appended, so that a reader who must not see that commit sees what was there before; and
// how old items may become, so that whoever meets it can forget.
namespace tacit::store {

// Reads what these users have and writes it back with what is appended. To be called by the commit
// thread alone. `now` in Unix milliseconds.
Status PutHistories(const Rocks& rocks, uint16_t learner, CommitSeq seq,
                    const HistoryCommit& commit, int64_t now, rocksdb::WriteBatch* batch);
// Fills in the items of each of `users` and returns the step that they are as of, all from one
// moment.
Result<uint64_t> ReadHistories(const Rocks& rocks, uint16_t learner, int64_t now,
                               std::span<UserHistory> users);
// A user's items as of commit `seq`. Empty where nothing is known.
Result<std::vector<HistoryItem>> ReadHistory(const Rocks& rocks, const rocksdb::Snapshot* snapshot,
                                             uint16_t learner, CommitSeq seq, int64_t now,
                                             const Hash128& user);

// Drops items that are too old, and users who have no other, whenever their file is rewritten.
std::shared_ptr<rocksdb::CompactionFilterFactory> MakeHistoryFilter(const Clock& clock);

}  // namespace tacit::store
