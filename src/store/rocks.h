#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"

// RocksDB, its column families and the keys in them. Private to the room: nothing else of the house
// sees a RocksDB type.
namespace tacit::store {

enum class Family : size_t { kRows, kDeltas, kOffsets, kLedger, kMeta, kAllowance, kHistories };
inline constexpr size_t kFamilies = 7;

// The first thing that went wrong for good. Shared by the store's threads and RocksDB's.
// Thread-safe.
class FailureLatch {
 public:
  void Set(Error error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  Status status() const {
    std::lock_guard lock(mutex_);
    if (error_) return Fail(*error_);
    return {};
  }
  bool failed() const {
    std::lock_guard lock(mutex_);
    return error_.has_value();
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

// An open database. Closes it when the last holder lets go, unless it has failed: then it stays as
// it is until the process ends, because Debian's RocksDB is built with assertions and aborts when a
// log file that could not be written is closed. Thread-safe.
class Rocks {
 public:
  // Creates what is missing. Background errors of RocksDB (a flush or compaction that failed) set
  // `latch`. kUnavailable: locked by another process. `clock` (null: the system's) says what is too
  // old to be kept, and must outlive the database.
  static Result<std::shared_ptr<Rocks>> Open(const std::string& path, uint64_t memory_bytes,
                                             std::shared_ptr<FailureLatch> latch,
                                             const Clock* clock = nullptr);
  // A view of the moment, beside whoever owns the database. Writes nothing.
  static Result<std::shared_ptr<Rocks>> OpenReadOnly(const std::string& path);
  // Whether there is a database at all.
  static bool Exists(const std::string& path);

  ~Rocks();
  Rocks(const Rocks&) = delete;
  Rocks& operator=(const Rocks&) = delete;

  rocksdb::DB& db() const { return *db_; }
  rocksdb::ColumnFamilyHandle* family(Family family) const {
    return families_[static_cast<size_t>(family)];
  }
  const std::string& path() const { return path_; }
  const Clock& clock() const { return clock_; }

  // The sealed value under a key, unsealed; nothing when the key is not there.
  Result<std::optional<std::string>> Get(Family family, std::string_view key) const;
  // Every (key, unsealed value) of a family whose key begins with `prefix`, in key order.
  Result<std::vector<std::pair<std::string, std::string>>> Scan(Family family,
                                                                std::string_view prefix) const;
  // The ledger entries [begin, end) as of `snapshot`, encoded. kCorruption unless all are there.
  Result<std::vector<std::string>> ReadLedger(const rocksdb::Snapshot* snapshot, uint64_t begin,
                                              uint64_t end) const;
  // Writes to the log go through these. The first failure is for good, and sets the latch: after a
  // log file has failed once RocksDB must not be asked to write or sync it again, so whoever writes
  // and syncs in two steps holds the lock over both.
  std::unique_lock<std::mutex> LockLog() const { return std::unique_lock(log_mutex_); }
  // REQUIRE the lock.
  Status LogStatus() const { return latch_->status(); }
  Status Write(rocksdb::WriteBatch& batch) const;
  Status SyncLog() const;
  // Takes the lock.
  Status WriteSynced(rocksdb::WriteBatch& batch) const;

 private:
  Rocks(std::string path, std::shared_ptr<FailureLatch> latch, const Clock& clock)
      : path_(std::move(path)), latch_(std::move(latch)), clock_(clock) {}
  Status Latch(const rocksdb::Status& status, std::string_view doing) const;
  Status Adopt(rocksdb::Status status, rocksdb::DB* db,
               const std::vector<rocksdb::ColumnFamilyHandle*>& handles);

  const std::string path_;
  const std::shared_ptr<FailureLatch> latch_;
  const Clock& clock_;
  mutable std::mutex log_mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilies> families_{};
  rocksdb::ColumnFamilyHandle* default_family_ = nullptr;
};

// RocksDB's verdict in ours: `doing` says what was tried.
Status ToStatus(const rocksdb::Status& status, std::string_view doing);

inline rocksdb::Slice AsSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

// Big-endian, so that RocksDB's byte order is number order.
std::string SequenceKey(uint64_t number);
uint64_t SequenceOf(std::string_view key);

// Keys of `meta`.
namespace meta {
inline constexpr std::string_view kFormat = "format";
inline constexpr std::string_view kLineage = "lineage";
inline constexpr std::string_view kSalt = "salt";
inline constexpr std::string_view kUserKey = "user_key";
inline constexpr std::string_view kShards = "shards";
inline constexpr std::string_view kTip = "tip";
inline constexpr std::string_view kLedgerState = "ledger_state";
inline constexpr std::string_view kSource = "source";
inline constexpr std::string_view kFolded = "folded";
inline constexpr std::string_view kLearnerPrefix = "learner/";
inline constexpr std::string_view kDensePrefix = "dense/";
inline constexpr std::string_view kMechanismPrefix = "mechanism/";
inline constexpr std::string_view kMechanismCommitPrefix = "mechanism_commit/";
}  // namespace meta

// prefix | u16 big-endian: the place of a learner in `meta` and, with no prefix, in `offsets`.
std::string LearnerKey(std::string_view prefix, uint16_t learner);

// Where a row lies: the integer form of the key shard u8 | learner u16 | table u16 | bucket u64.
struct RowPlace {
  uint64_t high = 0;  // shard, learner and table
  uint64_t bucket = 0;
  friend auto operator<=>(const RowPlace&, const RowPlace&) = default;
};
inline constexpr size_t kRowKeyBytes = 13;
using RowKey = std::array<char, kRowKeyBytes>;
RowKey EncodeRowKey(const RowPlace& place);

// Sorts behind every row. Its value is the commit up to which the rows of this family are complete;
// it lies in the same sorted file as the rows, so it cannot be ahead of them.
inline constexpr std::string_view kRowsMarkerKey = "\xff\xff folded";

// Options of the rows family, for the files that are ingested into it.
rocksdb::Options RowsFileOptions();

}  // namespace tacit::store
