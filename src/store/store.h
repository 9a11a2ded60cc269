#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/terms.h"
#include "base/user_uses.h"
#include "privacy/ledger.h"
#include "store/checkpoint/checkpoint.h"
#include "store/committer.h"
#include "store/disk/damage.h"
#include "store/disk/format.h"
#include "store/releaser.h"
#include "store/types/learner_layout.h"
#include "store/types/snapshot.h"
#include "store/user_book.h"

namespace tacit::store {

// The current work of Open and its progress; `of` is 0 if the amount is unknown.
struct OpenProgress {
  std::string_view doing;
  uint64_t done = 0, of = 0;
};

inline constexpr uint32_t kNewShards = 4;

struct StoreOptions {
  std::string path;
  std::string witness;  // file outside `path`; empty if none, and the claim is smaller
  // A second witness, stored with the source, which reveals that store and witness were restored
  // together; empty if none. If it is missing, Open logs that and creates it.
  std::string mark;
  // Opens a store with commits although its witness is missing. Only for a lost witness of a store
  // that is known to be the newest copy.
  bool accept_missing_witness = false;
  // Takes over models that lose something by it: a feature that is gone, say. Those that lose
  // nothing are taken over in any case.
  bool may_lose = false;
  // Stored learners that go on under another name: the old one by the new one, which a configured
  // learner has. Those that are called so already need nothing.
  std::map<std::string, std::string> renames = {};
  // At most 128. 0: what the store has, or kNewShards for a new one. Changed by Reshard alone.
  uint32_t shards = 0;
  // Folders, of disks of their own perhaps, that the shards of a new store are spread over; empty:
  // they are inside the store.
  std::vector<std::string> shard_paths = {};
  uint64_t memory_bytes = 0;        // block cache and memtables; REQUIRES at least 32 MiB
  uint64_t row_cache_bytes = 0;     // per learner, WorkingRows
  uint32_t reader_threads = 0;      // that read rows ahead of the trainer; 0: none is read ahead
  uint32_t fold_after_commits = 8;  // folds at about this many unfolded deltas
  uint64_t overlay_bytes = uint64_t{256} << 20;    // folds at about this much of unfolded rows
  uint64_t fold_file_bytes = uint64_t{256} << 10;  // from so much a shard on a fold writes files
  bool direct_reads = false;                       // past the system's own cache of files
  // Deltas of folded commits are kept up to this many bytes, for ForReleasedRows, until
  // TakenFromOutbox lets them go; 0: none is kept.
  uint64_t outbox_bytes = 0;
  uint64_t open_files_most = 0;  // tables kept open; 0: all
  std::string code_version;
  std::vector<LearnerLayout> learners;
  std::optional<privacy::TotalBudget> total_budget;  // for all learners together
  const Clock* clock =
      nullptr;  // for the ledger's times; must outlive the store; if null, the system's
  // Called repeatedly while Open works; if it returns false, Open gives up and nothing is lost. May
  // be empty.
  std::function<bool(const OpenProgress&)> on_open = {};
  // The steps by which Open brings a store of an older format up. There is no older format yet.
  std::span<const FormatStep> format_steps = {};
};

// The durable state of all learners in RocksDB: rows, dense parameters, positions and the privacy
// ledger, changed by atomic synced commits only. Owns the commit thread and the fold thread.
// Thread-safe, except for working_rows(), which belong to the trainer.
//
// A commit is one WriteBatch holding one delta blob, the positions and the ledger entries. Order:
// write, sync, witness and mark, publish; a crash between any two loses at most work that was never
// visible. A background thread folds deltas into sorted row files.
class Store : public Committer, public UserBook, public Releaser {
 public:
  // Opens or creates a store. kUnavailable: locked by another process, or on_open returned false.
  // kRefused: older than its witness or mark, a fork, another lineage, another model or promise.
  // kCorruption: damaged bytes. kInvalidArgument: options, or a folder that this user cannot work
  // in. kIo: the disk. The message names the path and the difference.
  static Result<std::unique_ptr<Store>> Open(StoreOptions options);

  // A learner as of the last published commit.
  virtual LearnerState State(LearnerIndex learner) const = 0;
  virtual std::string source_identity() const = 0;
  // The learner's LearnerCommit::allocation, as of the last commit. A secret.
  virtual Result<std::string> ReadAllocation(LearnerIndex learner) const = 0;
  std::shared_ptr<const Snapshot> Latest() const override = 0;  // one for all three

  // Flushes, then prepares a shutdown: the next Open has nothing to replay, little to fold, and
  // needs almost no room. A failure costs the next Open time and room, but no commit.
  virtual Status Settle() = 0;

  // Makes a checkpoint of the last published commit, or returns the one that there is. Commits go
  // on; one waits while the files are listed. May be called from any thread; a second call waits
  // for the first. kUnavailable: nothing is committed yet, or another process works in the parent.
  // REQUIRES that the store outlives the call.
  virtual Result<CheckpointMade> MakeCheckpoint(const CheckpointRequest& request) = 0;

  // Reads every table and blob that the store consists of now, from the disk, and compares each
  // with the SHA-256 that it was written with. Returns the damaged ones. `pace` is called after
  // each piece with its bytes and those of all tables; it may wait, and ends the reading by
  // returning false. May be called from any thread.
  using Pace = std::function<bool(uint64_t read, uint64_t of)>;
  virtual Result<std::vector<Damage>> FindDamage(const Pace& pace) const = 0;

  // The database's account of itself.
  struct EngineStats {
    uint64_t table_bytes = 0, blob_bytes = 0;  // of files in use
    uint64_t block_cache_bytes = 0, memtable_bytes = 0;
    uint64_t level0_files = 0;
    uint64_t pending_compaction_bytes = 0;  // an estimate
    uint64_t running_compactions = 0, running_flushes = 0;
    bool writes_stopped = false;
    uint64_t delayed_write_bytes_per_second = 0;  // 0: writes are not held up
    uint64_t background_errors = 0;
  };
  // May be called from any thread; takes some tens of microseconds.
  virtual EngineStats engine_stats() const = 0;
};

// A store or checkpoint read by a process that does not own it. It shows nothing beyond the witness
// (if there is one; a checkpoint needs none), takes no lock and writes nothing. With empty
// `layouts` only the ledger can be read.
struct ReadOnlyStore {
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<privacy::LedgerEntry> entries;
  privacy::Ledger::Promises promises;                       // from the newest commit on disk
  std::optional<CheckpointKind> checkpoint = std::nullopt;  // nothing if it is a store
  // Store::CountUsers, by a learner's name. A release checkpoint has no users.
  std::function<Result<UsersByUses>(std::string_view learner)> count_users = {};
  Terms terms = {};  // of the starts that committed
};
inline constexpr uint64_t kReaderBytes = 64 << 20;  // of RocksDB's, for reading
Result<ReadOnlyStore> OpenReadOnly(const std::string& path, const std::string& witness,
                                   const std::vector<LearnerLayout>& layouts,
                                   uint64_t reader_bytes = kReaderBytes);

}  // namespace tacit::store
