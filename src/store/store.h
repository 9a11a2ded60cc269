#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/siphash.h"
#include "base/user_uses.h"
#include "privacy/ledger.h"
#include "store/delta.h"
#include "store/history.h"
#include "store/snapshot.h"
#include "store/working_rows.h"

namespace tacit::store {

struct LearnerLayout {
  std::string name;
  RowLayout rows;
  privacy::Promise promise;
};

struct StoreOptions {
  std::string path;
  std::string witness;  // file outside `path`; empty: none, and the claim is smaller
  // Goes on although the witness is missing and the store holds commits. Only for a lost witness of
  // a store that is known to be the newest copy.
  bool accept_missing_witness = false;
  uint32_t shards = 16;             // at most 128; fixed when the store is created
  uint64_t memory_bytes = 0;        // block cache and memtables; REQUIRES at least 32 MiB
  uint64_t row_cache_bytes = 0;     // per learner, WorkingRows
  uint32_t fold_after_commits = 8;  // unfolded deltas kept at most about this many
  uint64_t overlay_bytes = uint64_t{256} << 20;  // unfolded rows kept in memory at most about this
  std::string code_version;
  std::vector<LearnerLayout> learners;
  std::optional<privacy::TotalBudget> total_budget;  // of all learners together
  const Clock* clock =
      nullptr;  // of the ledger's times; must outlive the store; null: the system's
};

// What a learner goes on from. Without a commit yet: no dense state and an empty position.
struct LearnerState {
  std::shared_ptr<const DenseState> dense;
  std::string position;
  std::shared_ptr<const std::string> mechanism_state;  // null: none was ever committed
};

// RocksDB behind one door: rows, dense parameters, positions and the privacy ledger of all
// learners, changed by atomic synced commits only. Owns the commit thread and the fold thread.
// Thread-safe, but for working_rows(), which belong to the trainer.
//
// A commit is one WriteBatch holding one delta blob, the positions and the ledger entries. Order:
// write, sync, witness, publish; a crash between any two loses at most work that nobody saw. Deltas
// are folded into sorted row files in the background.
class EmbeddingStore {
 public:
  // Opens or creates. kUnavailable: locked by another process. kRefused: behind its witness,
  // another lineage, another model or promise. kCorruption: bytes that are not what was written.
  // kIo: the disk. The message names the path and what differs.
  static Result<std::unique_ptr<EmbeddingStore>> Open(StoreOptions options);
  virtual ~EmbeddingStore() = default;

  virtual LearnerState State(LearnerIndex learner) const = 0;
  virtual std::string source_identity() const = 0;
  virtual std::string lineage() const = 0;
  // The secret under which users are counted: drawn when the store is made, never told.
  virtual SipHash::Key user_key() const = 0;
  // Fills in how much of the learner's allowance each of these users (named by `user`) has used,
  // and returns the step that it is as of: both of one commit, which may be one that is written and
  // not published yet. May be called from any thread.
  virtual Result<uint64_t> ReadAllowances(LearnerIndex learner,
                                          std::span<UserUses> users) const = 0;
  // The same for their recent items: fills in each user's (named by `user`).
  virtual Result<uint64_t> ReadHistories(LearnerIndex learner,
                                         std::span<UserHistory> users) const = 0;
  virtual WorkingRows& working_rows(LearnerIndex learner) = 0;

  // The budget's questions, everything enqueued included: the epsilon of a learner after these
  // charges of it too, and of all learners together after these of any of them (at `delta`; without
  // one at the total budget's, or else the largest of the learners'). See privacy::Ledger.
  virtual double EpsilonAfter(std::span<const privacy::CommitCharge> charges) const = 0;
  virtual double TotalEpsilonAfter(std::span<const privacy::CommitCharge> charges,
                                   std::optional<Delta> delta = std::nullopt) const = 0;

  // Hands a commit to the commit thread; waits while another is in flight. `done` (may be empty) is
  // called on the commit thread after the witness is written and the snapshot published, or with
  // the failure; it must not call Commit or Flush. After a failure every later commit fails at
  // once: the failure is returned here and `done` is not called. To be called by the trainer; a
  // learner's rows are those of its TakeDelta, in order.
  virtual Status Commit(CommitRequest request, std::function<void(Status)> done) = 0;
  // Waits until every enqueued commit is published or has failed.
  virtual Status Flush() = 0;

  // The last published snapshot; never null (version 0 before the first commit).
  virtual std::shared_ptr<const Snapshot> Latest() const = 0;

  struct Stats {
    uint64_t commits = 0, commit_bytes = 0, folded_rows = 0, unfolded_deltas = 0;
    double last_commit_ms = 0;
  };
  virtual Stats stats() const = 0;
};

// A store read by somebody who does not own it: shows nothing beyond the witness (when there is
// one), takes no lock, writes nothing. `layouts` may be empty: then only the ledger can be read.
struct ReadOnlyStore {
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<privacy::LedgerEntry> entries;
  privacy::Ledger::Promises promises;  // as last committed
};
Result<ReadOnlyStore> OpenReadOnly(const std::string& path, const std::string& witness,
                                   const std::vector<LearnerLayout>& layouts);

}  // namespace tacit::store
