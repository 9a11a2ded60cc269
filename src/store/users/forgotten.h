#pragma once

#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "store/disk/rocks.h"
#include "store/types/history.h"

// Users who asked to be forgotten: their histories are deleted, and the store remembers the time
// under the user's keyed hash. Items from before it may still be on their way, or be read again
// after a crash; they are not remembered again. Allowances stay as they are.
//
// A deletion hides a value at once and leaves its bytes in files. EraseFromFiles rewrites these.
namespace tacit::store {

// The forgotten users of an open store. Thread-safe.
class ForgottenUsers {
 public:
  explicit ForgottenUsers(std::span<const ForgottenUser> users = {});

  // `deletion`: RocksDB's number of the write that deleted the histories, 0 if it was before the
  // store was opened.
  void Add(const ForgottenUser& user, uint64_t deletion);
  std::optional<ForgottenUser> Find(const Hash128& user) const;
  // Leaves out what is from before the user's request. An item without a time, or with one that
  // lies behind `now`, may be.
  void DropForgotten(const Hash128& user, int64_t now, std::vector<HistoryItem>* items) const;

  struct ToErase {
    std::vector<ForgottenUser> users;
    uint64_t deletion = 0;  // the last one's
  };
  // Those of whom a file may still hold something.
  ToErase Unerased() const;
  // Marks them as erased, unless they asked again since.
  void Erased(std::span<const ForgottenUser> users);

 private:
  struct Kept {
    ForgottenUser user;
    uint64_t deletion = 0;
  };
  mutable Mutex mutex_;
  std::unordered_map<Hash128, Kept> users_ TACIT_GUARDED_BY(mutex_);
};

// Adds to the batch: that the user is forgotten, and the deletion of the histories that learners
// with the keys 0 to `learners` - 1 have.
void PutForgotten(const Rocks& rocks, size_t learners, const ForgottenUser& user,
                  rocksdb::WriteBatch* batch);
// Adds to the batch: that no file holds anything of the user from before the request any more.
void PutErased(const Rocks& rocks, const ForgottenUser& user, rocksdb::WriteBatch* batch);
// Reads the forgotten users of a store, ascending by hash. kCorruption: a value is damaged.
Result<std::vector<ForgottenUser>> ReadForgotten(const Rocks& rocks);

// Rewrites the files, and ends the logs, that hold bytes of these users' deleted histories. Waits
// for readers of snapshots from before `deletion`. kUnavailable once `given_up` is set.
Status EraseFromFiles(const Rocks& rocks, size_t learners, const ForgottenUsers::ToErase& erase,
                      const std::atomic<bool>* given_up);

// Forgets users in a copy that no process has open: those whom it does not know as forgotten at
// that time or later.
Status ForgetAgain(const Rocks& rocks, size_t learners, std::span<const ForgottenUser> users);

}  // namespace tacit::store
