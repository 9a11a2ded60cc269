#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/threads/mutex.h"
#include "store/disk/retention_clock.h"
#include "store/disk/row_families.h"

// RocksDB, its column families and their keys. Private to the room: no other code sees a RocksDB
// type. Numbers in keys are big-endian, so that byte order is number order:
//     rows       shard:u8 learner:u16 table:u16 bucket:u64     shard = bucket mod shards
//                or "\xff\xff folded", after all rows; in one family, or in one for each shard
//     deltas     commit:u64
//     offsets    learner:u16
//     ledger     entry:u64
//     meta       a name; for some names followed by learner:u16, for `term/` by commit:u64
//     allowance, histories: see user_values.h
namespace tacit::store {

// kRows: the rows of release checkpoints. See row_families.h.
enum class Family : size_t { kRows, kDeltas, kOffsets, kLedger, kMeta, kAllowance, kHistories };
inline constexpr size_t kFamilies = 7;

// The first permanent failure. Shared by the store's threads and RocksDB's. Thread-safe.
class FailureLatch {
 public:
  // Keeps the first failure, and then tells who listens. REQUIRES no lock that the listener takes.
  void Set(Error error) {
    {
      const MutexLock lock(mutex_);
      if (error_) return;
      error_ = std::move(error);
    }
    const MutexLock lock(listener_mutex_);
    if (listener_) listener_();
  }
  // `listener` is called by the thread that fails, once status() says so. After null
  // nobody listens, and no call of the last one runs. A failure that came before is not told.
  void Listen(std::function<void()> listener) {
    const MutexLock lock(listener_mutex_);
    listener_ = std::move(listener);
  }
  Status status() const {
    const MutexLock lock(mutex_);
    if (error_) return Fail(*error_);
    return {};
  }
  bool failed() const {
    const MutexLock lock(mutex_);
    return error_.has_value();
  }

 private:
  mutable Mutex mutex_;
  std::optional<Error> error_ TACIT_GUARDED_BY(mutex_);
  Mutex listener_mutex_;
  std::function<void()> listener_ TACIT_GUARDED_BY(listener_mutex_);
};

// An open database. The last holder closes it, unless it has failed: then it stays open until the
// process ends, because Debian's RocksDB is built with assertions and aborts when it closes a log
// file that could not be written; nothing of it runs any more. Thread-safe.
class Rocks {
 public:
  // Opens the database, creating missing parts. Background errors of RocksDB (a failed flush or
  // compaction) set `latch`. kUnavailable: locked by a process. kInvalidArgument: this user cannot
  // work there. retention() uses `clock` (if null, the system's), which must outlive the database.
  // `open_files_most`: tables kept open; 0: all. `direct_reads`: past the system's own cache.
  static Result<std::shared_ptr<Rocks>> Open(const std::string& path, uint64_t memory_bytes,
                                             std::shared_ptr<FailureLatch> latch,
                                             const Clock* clock = nullptr,
                                             uint64_t open_files_most = 0,
                                             bool direct_reads = false);
  // Opens a view of the current state, beside the database's owner. Writes nothing.
  // `memory_bytes`: of its caches.
  static Result<std::shared_ptr<Rocks>> OpenReadOnly(const std::string& path,
                                                     uint64_t memory_bytes = uint64_t{64} << 20);
  // The same of a database that may be damaged and that no process has open. A table is looked at
  // when it is read from. What the log holds after its first damaged record is not there, so that
  // all is as of one commit.
  static Result<std::shared_ptr<Rocks>> OpenDamaged(const std::string& path);
  // Checks that there is a database at all. Fails where this user may not see or read it.
  static Result<bool> Exists(const std::string& path);

  ~Rocks();
  Rocks(const Rocks&) = delete;
  Rocks& operator=(const Rocks&) = delete;

  rocksdb::DB& db() const { return *db_; }
  rocksdb::ColumnFamilyHandle* family(Family family) const {
    return families_[static_cast<size_t>(family)];
  }
  // The family that holds a shard's rows.
  rocksdb::ColumnFamilyHandle* rows(uint64_t shard) const {
    return row_families_.size() == 1 ? row_families_[0] : row_families_[shard];
  }
  // The families that hold rows, in the order of their keys.
  std::span<rocksdb::ColumnFamilyHandle* const> row_families() const { return row_families_; }
  // The shards' families of the database at `path`, with files or without. Where its list of tables
  // cannot be read there are none.
  static std::vector<RowFamily> ShardsAt(const std::string& path);
  // The generation of the shards' families; 0: all rows are in one family.
  uint32_t row_generation() const { return row_generation_; }
  // All families but RocksDB's default one.
  std::vector<rocksdb::ColumnFamilyHandle*> all_families() const;
  // kCorruption: the families of rows cannot be told, or one is missing.
  const Status& rows_status() const { return rows_status_; }
  // Makes a family for each shard, with its folder (see MakeRowFolder). They are in use once `meta`
  // says so and UseRows was called.
  Result<std::vector<rocksdb::ColumnFamilyHandle*>> MakeRows(uint32_t generation, uint32_t shards,
                                                             const std::vector<std::string>& paths);
  // Uses these families, which are there, from now on.
  Status UseRows(uint32_t generation, uint32_t shards);
  // Drops the shards that are not in use, with their folders.
  Status RemoveUnusedRows();
  const std::string& path() const { return path_; }
  const Clock& clock() const { return clock_; }
  // Decides which histories are dropped for good. Opening a store starts it once the last commit is
  // loaded; until then none is dropped.
  RetentionClock& retention() const { return *retention_; }

  // The value under a key, unsealed; nothing if the key is missing.
  Result<std::optional<std::string>> Get(Family family, std::string_view key) const;
  // Every (key, unsealed value) of a family whose key begins with `prefix`, in key order.
  Result<std::vector<std::pair<std::string, std::string>>> Scan(Family family,
                                                                std::string_view prefix) const;
  // The ledger entries [begin, end) as of `snapshot`, encoded. kCorruption unless all are there.
  Result<std::vector<std::string>> ReadLedger(const rocksdb::Snapshot* snapshot, uint64_t begin,
                                              uint64_t end) const;
  // Log writes use these functions. The first failure is permanent and sets the latch: RocksDB must
  // not write or sync a log file again after it has failed. A caller that writes and syncs in two
  // steps therefore holds the lock over both. So a loss of power tears one batch at most, the last.
  Mutex& log_mutex() const TACIT_RETURNS_MUTEX(log_mutex_) { return log_mutex_; }
  Status LogStatus() const TACIT_REQUIRES(log_mutex_) { return latch_->status(); }
  Status Write(rocksdb::WriteBatch& batch) const TACIT_REQUIRES(log_mutex_);
  Status SyncLog() const TACIT_REQUIRES(log_mutex_);
  Status WriteSynced(rocksdb::WriteBatch& batch) const TACIT_EXCLUDES(log_mutex_);
  // Flushes the memtables, so that a start has no log to replay. Returns kIo, with nothing done, if
  // the disk lacks room for that.
  Status EmptyLog() const TACIT_EXCLUDES(log_mutex_);

 private:
  Rocks(std::string path, std::shared_ptr<FailureLatch> latch, const Clock& clock)
      : path_(std::move(path)),
        latch_(std::move(latch)),
        clock_(clock),
        retention_(std::make_shared<RetentionClock>(clock, path_)) {}
  Status Latch(const rocksdb::Status& status, std::string_view doing) const;
  // The most bytes that a family takes on disk once its memory is written out. Without replaced
  // values it looks at each key.
  uint64_t RoomFor(rocksdb::ColumnFamilyHandle* family, bool replaced_values) const;
  Status CheckRoomToWriteOut() const;
  void FindRows();
  static Result<std::shared_ptr<Rocks>> OpenToRead(std::string path, rocksdb::DBOptions options,
                                                   uint64_t memory_bytes);
  Status Adopt(const rocksdb::Status& status, rocksdb::DB* db,
               const std::vector<rocksdb::ColumnFamilyHandle*>& handles);

  const std::string path_;
  const std::shared_ptr<FailureLatch> latch_;
  const Clock& clock_;
  const std::shared_ptr<RetentionClock> retention_;  // RocksDB's threads hold it too
  std::unique_ptr<rocksdb::Env> env_;                // used by db_; if null, RocksDB's own
  mutable Mutex log_mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilies> families_{};
  std::map<std::string, rocksdb::ColumnFamilyHandle*> shard_families_;  // by name, used or not
  std::vector<rocksdb::ColumnFamilyHandle*> row_families_;
  uint32_t row_generation_ = 0;
  Status rows_status_;
  uint64_t memory_bytes_ = 0;
  rocksdb::ColumnFamilyHandle* default_family_ = nullptr;
};

// Converts RocksDB's status; `doing` names the attempted action.
Status ToStatus(const rocksdb::Status& status, std::string_view doing);

inline rocksdb::Slice AsSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

// Big-endian, so that RocksDB's byte order is number order.
std::string SequenceKey(uint64_t number);
uint64_t SequenceOf(std::string_view key);

// Keys of `meta`.
namespace meta {
inline constexpr std::string_view kFormat = "tacit_format";
inline constexpr std::string_view kFormatBeforeFirst = "format";  // of programs before 0.1.0
inline constexpr std::string_view kLineage = "lineage";
inline constexpr std::string_view kSalt = "salt";
inline constexpr std::string_view kUserKey = "user_key";
inline constexpr std::string_view kShards = "shards";
inline constexpr std::string_view kRows = "rows";  // not in release checkpoints
inline constexpr std::string_view kTip = "tip";
inline constexpr std::string_view kLedgerState = "ledger_state";
inline constexpr std::string_view kSource = "source";
inline constexpr std::string_view kFolded = "folded";
inline constexpr std::string_view kRelease = "release";  // in release checkpoints alone
inline constexpr std::string_view kReplica = "replica";  // in replicas' stores alone
inline constexpr std::string_view kReplicaPosition = "replica_position";  // there too
inline constexpr std::string_view kKnownTime = "known_time";
inline constexpr std::string_view kLearnerPrefix = "learner/";
inline constexpr std::string_view kFormPrefix = "form/";
inline constexpr std::string_view kDensePrefix = "dense/";
inline constexpr std::string_view kReleasedPrefix = "mechanism/";
inline constexpr std::string_view kMechanismCommitPrefix = "mechanism_commit/";
inline constexpr std::string_view kAllocationPrefix = "allocation/";
inline constexpr std::string_view kAncestors = "ancestors";         // in restored stores alone
inline constexpr std::string_view kFloorPrefix = "floor/";          // in restored stores alone
inline constexpr std::string_view kForgottenPrefix = "forgotten/";  // and a user's hash
inline constexpr std::string_view kTermPrefix = "term/";            // and a commit, big-endian
}  // namespace meta

// prefix | u16 big-endian: the key of a learner in `meta` and, with no prefix, in `offsets`.
std::string LearnerKey(std::string_view prefix, uint16_t learner);

// The place of a row: the integer form of the key shard u8 | learner u16 | table u16 | bucket u64.
struct RowPlace {
  uint64_t high = 0;  // shard, learner and table
  uint64_t bucket = 0;
  friend auto operator<=>(const RowPlace&, const RowPlace&) = default;
};
inline uint64_t PlaceHigh(uint64_t shard, uint16_t learner, uint32_t table) {
  return shard << 32 | uint64_t{learner} << 16 | table;
}
inline constexpr size_t kRowKeyBytes = 13;
using RowKey = std::array<char, kRowKeyBytes>;
RowKey EncodeRowKey(const RowPlace& place);

// Sorts after every row. Its value is the commit up to which the rows of this family are complete;
// it is in the same sorted file as the rows, so it cannot be ahead of them.
inline constexpr std::string_view kRowsMarkerKey = "\xff\xff folded";

// Options of the rows family, for files to ingest into it.
rocksdb::Options RowsFileOptions();

}  // namespace tacit::store
