#include "store/disk/rocks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crash_point.h"
#include "base/files/is_there.h"
#include "base/files/log.h"
#include "base/text.h"
#include "store/disk/file_digest.h"
#include "store/disk/folder.h"
#include "store/disk/frozen_files.h"
#include "store/disk/history_value.h"
#include "store/disk/log_damage.h"
#include "store/disk/our_files.h"
#include "store/disk/row_families.h"
#include "store/disk/seal.h"
#include "store/disk/table_tail.h"

#ifdef __SANITIZE_ADDRESS__
extern "C" void __lsan_ignore_object(const void* object);  // from the leak checker's own interface
#endif

namespace tacit::store {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr size_t kBlockBytes = 4096;
constexpr std::array<const char*, kFamilies> kFamilyNames = {
    "rows", "deltas", "offsets", "ledger", "meta", "allowance", "histories"};

// Passes an error of RocksDB's own threads to the next commit, and keeps RocksDB from recovering by
// itself: after a failure the store waits for an operator.
class ErrorListener final : public rocksdb::EventListener {
 public:
  ErrorListener(std::string path, std::shared_ptr<FailureLatch> latch)
      : path_(std::move(path)), latch_(std::move(latch)) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* status) override {
    if (status->severity() < rocksdb::Status::Severity::kHardError) return;
    const Status failure = ToStatus(*status, "background work of store " + path_);
    if (!failure) latch_->Set(failure.error());
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

 private:
  const std::string path_;
  const std::shared_ptr<FailureLatch> latch_;
};

// Sends RocksDB's messages to our log. A log file of RocksDB's own would abort the process on a
// full disk, because RocksDB uses its writer again after a failed write. This object keeps our log
// alive: the threads of a database that is left open may log while the process ends.
class OurLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    Logv(rocksdb::InfoLogLevel::INFO_LEVEL, format, arguments);
  }
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    char line[512];
    std::vsnprintf(line, sizeof(line), format, arguments);
    const bool bad =
        level >= rocksdb::InfoLogLevel::ERROR_LEVEL && level < rocksdb::InfoLogLevel::HEADER_LEVEL;
    log_->log(bad ? spdlog::level::err : spdlog::level::debug, "store: {}", Printable(line));
  }

 private:
  const std::shared_ptr<spdlog::logger> log_ = spdlog::default_logger();
};

// Discards messages: a reader that does not own the store leaves no log file in it.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// f32 rows do not compress; a random row read must fetch about 4 KB anyway.
rocksdb::BlockBasedTableOptions TableOptions(std::shared_ptr<rocksdb::Cache> cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_size = kBlockBytes;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.no_block_cache = cache == nullptr;
  table.cache_index_and_filter_blocks = cache != nullptr;
  table.pin_l0_filter_and_index_blocks_in_cache = cache != nullptr;
  table.block_cache = std::move(cache);
  return table;
}

rocksdb::ColumnFamilyOptions FamilyOptions(std::shared_ptr<rocksdb::Cache> cache,
                                           uint64_t write_buffer_bytes) {
  rocksdb::ColumnFamilyOptions options;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = write_buffer_bytes;
  options.level_compaction_dynamic_level_bytes = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(TableOptions(std::move(cache))));
  return options;
}

// Deltas are megabytes long, live for a few commits and are read only at open. Their blocks would
// push rows out of the cache; in blob files of their own a compaction drops them without copying.
rocksdb::ColumnFamilyOptions DeltaOptions(uint64_t write_buffer_bytes) {
  rocksdb::ColumnFamilyOptions options = FamilyOptions(nullptr, write_buffer_bytes);
  options.enable_blob_files = true;
  options.min_blob_size = 64 << 10;
  return options;
}

constexpr uint64_t kDaySeconds = 86400;

// Compacts every file once a day, so that old items are dropped even of users who never come back.
rocksdb::ColumnFamilyOptions HistoryOptions(rocksdb::ColumnFamilyOptions options,
                                            std::shared_ptr<RetentionClock> retention) {
  options.compaction_filter_factory = MakeHistoryFilter(std::move(retention));
  options.periodic_compaction_seconds = kDaySeconds;
  return options;
}

// A fold brings a small file with rows of all shards, and merging files of level 0 rewrites all of
// the next level. So the next level is small, and more files are merged at once; RocksDB's own
// sizes rewrite up to 256 MiB for every four folds. Each file of level 0 is asked for a row that is
// not in memory: from about 16 on, reads get slower.
void TakeSmallFiles(rocksdb::ColumnFamilyOptions* options) {
  options->level0_file_num_compaction_trigger = 8;
  options->level0_slowdown_writes_trigger = 40;
  options->level0_stop_writes_trigger = 64;
  options->max_bytes_for_level_base = 8 * kMebibyte;
  options->target_file_size_base = 8 * kMebibyte;
}

// A shard's part of the memory for rows. Blocks of memory are small, because many shards have one
// that is hardly used.
rocksdb::ColumnFamilyOptions ShardOptions(std::shared_ptr<rocksdb::Cache> cache, uint64_t buffers,
                                          size_t shards, const std::string& folder) {
  constexpr size_t kMemoryBlock = 64 << 10;
  const uint64_t least = 512 << 10;
  auto options =
      FamilyOptions(std::move(cache), std::clamp(buffers / (2 * shards), least, 8 * kMebibyte));
  options.arena_block_size = kMemoryBlock;
  TakeSmallFiles(&options);
  options.cf_paths.emplace_back(folder, 0);
  return options;
}

rocksdb::ColumnFamilyOptions OptionsOf(Family family, std::shared_ptr<rocksdb::Cache> cache,
                                       uint64_t buffers,
                                       const std::shared_ptr<RetentionClock>& retention) {
  if (family == Family::kDeltas) return DeltaOptions(buffers);
  auto options = FamilyOptions(std::move(cache), std::min(buffers, 8 * kMebibyte));
  if (family == Family::kRows) TakeSmallFiles(&options);
  if (family == Family::kHistories) return HistoryOptions(std::move(options), retention);
  // A secret that was deleted is then gone from the files too.
  if (family == Family::kMeta) options.periodic_compaction_seconds = kDaySeconds;
  return options;
}

const Clock& SystemTime() {
  static const SystemClock clock;
  return clock;
}

// Block cache gets three quarters of the memory, memtables one quarter.
std::vector<rocksdb::ColumnFamilyDescriptor> Descriptors(
    const std::string& path, uint64_t memory_bytes,
    const std::shared_ptr<RetentionClock>& retention, const std::vector<RowFamily>& shards) {
  const uint64_t buffers = memory_bytes / 4;
  const auto cache =
      rocksdb::HyperClockCacheOptions(memory_bytes - buffers, kBlockBytes).MakeSharedCache();
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, FamilyOptions(cache, kMebibyte));
  for (size_t i = 0; i < kFamilies; ++i)
    families.emplace_back(kFamilyNames[i],
                          OptionsOf(static_cast<Family>(i), cache, buffers, retention));
  for (const RowFamily& shard : shards)
    families.emplace_back(shard.Name(),
                          ShardOptions(cache, buffers, shards.size(), path + "/" + shard.Folder()));
  return families;
}

// In the default recovery mode one flipped bit in the middle of the log opens without an error and
// loses every later synced commit; this mode forgives only a record cut short at the end. It takes
// a record that a loss of power left in part for damage: TornLogs tells them apart.
rocksdb::DBOptions DatabaseOptions(uint64_t memory_bytes, uint64_t open_files_most) {
  rocksdb::DBOptions options;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.db_write_buffer_size = memory_bytes / 4;
  options.max_total_wal_size = std::clamp(memory_bytes / 8, 32 * kMebibyte, 512 * kMebibyte);
  options.wal_bytes_per_sync = kMebibyte;
  options.max_background_jobs = 2;
  options.max_open_files =
      open_files_most == 0 ? -1 : static_cast<int>(std::min<uint64_t>(open_files_most, 1 << 30));
  options.stats_dump_period_sec = options.stats_persist_period_sec =
      0;  // our log begins at warnings
  options.info_log_level = rocksdb::WARN_LEVEL;
  options.info_log = std::make_shared<OurLog>();
  // After a failure nothing may touch the files again: only a new start heals a store.
  options.max_bgerror_resume_count = 0;
  options.file_checksum_gen_factory = MakeFileDigests();
  options.db_host_id = "";  // checkpoints, which may leave this machine, have the same files
  return options;
}

template <class Int>
void PutBigEndian(char* out, Int value) {
  for (size_t i = 0; i < sizeof(Int); ++i)
    out[i] = static_cast<char>(value >> (8 * (sizeof(Int) - 1 - i)));
}

template <class Int>
std::string KeyOf(std::string_view prefix, Int number) {
  std::string key(prefix);
  key.resize(prefix.size() + sizeof(number));
  PutBigEndian(key.data() + prefix.size(), number);
  return key;
}

// Marks an object as intentionally never freed.
void LeaveOpen([[maybe_unused]] const void* object) {
#ifdef __SANITIZE_ADDRESS__
  __lsan_ignore_object(object);
#endif
}

// The shards' families that the database has. Where its list of tables cannot be read RocksDB says
// why as it opens.
std::vector<RowFamily> ListShards(const rocksdb::DBOptions& options, const std::string& path) {
  std::vector<std::string> names;
  std::vector<RowFamily> shards;
  if (!rocksdb::DB::ListColumnFamilies(options, path, &names).ok()) return shards;
  for (const std::string& name : names)
    if (const auto shard = RowFamilyOf(name)) shards.push_back(*shard);
  return shards;
}

// RocksDB writes its options anew for each family that it makes as it opens; so not for a new one.
rocksdb::Status OpenFamilies(const rocksdb::DBOptions& options, const std::string& path,
                             const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                             std::vector<rocksdb::ColumnFamilyHandle*>* handles, rocksdb::DB** db) {
  if (HoldsRecords(path) || !CheckCurrent(path))
    return rocksdb::DB::Open(options, path, families, handles, db);
  auto status = rocksdb::DB::Open(options, path, {families.front()}, handles, db);
  if (!status.ok()) return status;
  std::vector<rocksdb::ColumnFamilyHandle*> made;
  status = (*db)->CreateColumnFamilies({families.begin() + 1, families.end()}, &made);
  handles->insert(handles->end(), made.begin(), made.end());
  if (status.ok()) return status;
  for (auto* handle : *handles) (*db)->DestroyColumnFamilyHandle(handle);
  delete std::exchange(*db, nullptr);
  return status;
}

// RocksDB would begin a new database where CURRENT is gone, and remove the files of the old one.
Status CheckNotBegunAnew(const std::string& path) {
  if (!HoldsRecords(path) || !CheckCurrent(path)) return {};
  TACIT_ASSIGN(const bool held, IsHeldByAnother(path));
  if (held) return {};
  return Fail(ErrorCode::kCorruption, ExplainCorruption(path, "opening store " + path));
}

}  // namespace

Status ToStatus(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) return {};
  ErrorCode code = ErrorCode::kInternal;
  if (status.IsCorruption()) code = ErrorCode::kCorruption;
  if (status.IsIOError() || status.IsNoSpace()) code = ErrorCode::kIo;
  if (status.IsNotFound() || status.IsPathNotFound()) code = ErrorCode::kNotFound;
  return Fail(code, fmt::format("{}: {}", doing, Printable(status.ToString())));
}

Status Rocks::Adopt(const rocksdb::Status& status, rocksdb::DB* db,
                    const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  if (status.IsCorruption() || status.IsPathNotFound())
    return Fail(ErrorCode::kCorruption,
                ExplainCorruption(path_, fmt::format("opening store {}: {}", path_,
                                                     Printable(status.ToString()))));
  TACIT_RETURN_IF_ERROR(ToStatus(status, "opening store " + path_));
  db_.reset(db);
  default_family_ = handles[0];
  std::copy_n(handles.begin() + 1, kFamilies, families_.begin());
  for (size_t i = 1 + kFamilies; i < handles.size(); ++i)
    shard_families_[handles[i]->GetName()] = handles[i];
  FindRows();
  return {};
}

void Rocks::FindRows() {
  row_families_ = {family(Family::kRows)};
  rows_status_ = [&]() -> Status {
    TACIT_ASSIGN(const auto generation, Get(Family::kMeta, meta::kRows));
    TACIT_ASSIGN(const auto shards, Get(Family::kMeta, meta::kShards));
    TACIT_ASSIGN(const auto format, Get(Family::kMeta, meta::kFormat));
    TACIT_ASSIGN(const auto release, Get(Family::kMeta, meta::kRelease));
    if (!generation && (!format || release)) return {};
    if (!generation || !shards)
      return Fail(ErrorCode::kCorruption, fmt::format("store {}: '{}' is missing", path_,
                                                      generation ? meta::kShards : meta::kRows));
    return UseRows(ByteReader(*generation).Get<uint32_t>(), ByteReader(*shards).Get<uint32_t>());
  }();
}

Status Rocks::UseRows(uint32_t generation, uint32_t shards) {
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  for (uint32_t shard = 0; shard < shards; ++shard) {
    const auto found = shard_families_.find(RowFamily{generation, shard}.Name());
    if (found == shard_families_.end())
      return Fail(ErrorCode::kCorruption,
                  fmt::format("store {}: the rows of shard {} are missing", path_, shard));
    families.push_back(found->second);
  }
  row_families_ = std::move(families);
  row_generation_ = generation;
  return {};
}

Result<std::vector<rocksdb::ColumnFamilyHandle*>> Rocks::MakeRows(
    uint32_t generation, uint32_t shards, const std::vector<std::string>& paths) {
  const uint64_t buffers = memory_bytes_ / 4;
  // The cache of the families that there are.
  const auto cache = db_->GetOptions(family(Family::kMeta))
                         .table_factory->GetOptions<rocksdb::BlockBasedTableOptions>()
                         ->block_cache;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (uint32_t shard = 0; shard < shards; ++shard) {
    const RowFamily row_family{generation, shard};
    TACIT_RETURN_IF_ERROR(MakeRowFolder(path_, row_family, paths));
    descriptors.emplace_back(
        row_family.Name(), ShardOptions(cache, buffers, shards, path_ + "/" + row_family.Folder()));
  }
  std::vector<rocksdb::ColumnFamilyHandle*> made;
  const auto status = db_->CreateColumnFamilies(descriptors, &made);
  for (auto* family : made) shard_families_[family->GetName()] = family;
  TACIT_RETURN_IF_ERROR(Latch(status, "making the shards of"));
  return made;
}

Status Rocks::RemoveUnusedRows() {
  for (auto it = shard_families_.begin(); it != shard_families_.end();) {
    if (std::ranges::find(row_families_, it->second) != row_families_.end()) {
      ++it;
      continue;
    }
    TACIT_RETURN_IF_ERROR(Latch(db_->DropColumnFamily(it->second), "dropping unused shards of"));
    db_->DestroyColumnFamilyHandle(it->second);
    it = shard_families_.erase(it);
  }
  TACIT_ASSIGN(const auto folders, FoldersOf(path_));
  for (const std::string& folder : folders) {
    const bool used = folder.empty() || std::ranges::any_of(shard_families_, [&](const auto& one) {
                        return RowFamilyOf(one.first)->Folder() == folder;
                      });
    if (!used) TACIT_RETURN_IF_ERROR(RemoveRowFolder(path_, folder));
  }
  return {};
}

std::vector<RowFamily> Rocks::ShardsAt(const std::string& path) {
  return ListShards(rocksdb::DBOptions(), path);
}

std::vector<rocksdb::ColumnFamilyHandle*> Rocks::all_families() const {
  std::vector<rocksdb::ColumnFamilyHandle*> all(families_.begin(), families_.end());
  for (const auto& [name, handle] : shard_families_) all.push_back(handle);
  return all;
}

Result<std::shared_ptr<Rocks>> Rocks::Open(const std::string& path, uint64_t memory_bytes,
                                           std::shared_ptr<FailureLatch> latch, const Clock* clock,
                                           uint64_t open_files_most, bool direct_reads) {
  TACIT_CHECK(memory_bytes >= 32 * kMebibyte, "a store needs at least 32 MiB");
  TACIT_RETURN_IF_ERROR(CheckRoom(path));
  TACIT_RETURN_IF_ERROR(PrepareFolder(path));
  TACIT_RETURN_IF_ERROR(CheckNotBegunAnew(path));
  const Clock& time = clock != nullptr ? *clock : SystemTime();
  std::shared_ptr<Rocks> rocks(new Rocks(path, latch, time));
  const auto files = std::make_shared<OurFiles>(path);
  rocks->env_ = rocksdb::NewCompositeEnv(files);
  rocksdb::DBOptions options = DatabaseOptions(memory_bytes, open_files_most);
  options.env = rocks->env_.get();
  options.use_direct_reads = direct_reads;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.listeners.push_back(std::make_shared<ErrorListener>(path, std::move(latch)));
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocks->memory_bytes_ = memory_bytes;
  rocksdb::Status status;
  bool torn = true;
  std::vector<RowFamily> shards = ListShards(options, path), before;
  do {
    CrashPoint("open.listed");
    for (const RowFamily& shard : shards) TACIT_RETURN_IF_ERROR(NeedRowFolder(path, shard));
    status = OpenFamilies(options, path, Descriptors(path, memory_bytes, rocks->retention_, shards),
                          &handles, &db);
    // Another process may have made the store since they were listed, and have ended.
    if (!status.ok()) before = std::exchange(shards, ListShards(options, path));
  } while ((status.IsInvalidArgument() && shards != before) ||
           (status.IsCorruption() && std::exchange(torn, false) && CutTornLogs(path)));
  if (!status.ok() && MeansHeld(files->error(), path))
    return Fail(ErrorCode::kUnavailable,
                fmt::format("store {} is locked: {} has it open", path, HolderOf(path)));
  TACIT_RETURN_IF_ERROR(rocks->Adopt(status, db, handles));
  if (rocks->rows_status_) TACIT_RETURN_IF_ERROR(rocks->RemoveUnusedRows());
  return rocks;
}

namespace {

// A reader leaves half of the limit to its caller and to its output. Of its own half, one part is
// for frozen files and one for tables beyond them.
uint64_t QuarterOfFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  return std::max<uint64_t>(limit.rlim_cur / 4, 1);
}

}  // namespace

Result<std::shared_ptr<Rocks>> Rocks::OpenToRead(std::string path, rocksdb::DBOptions options,
                                                 uint64_t memory_bytes) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  options.info_log = std::make_shared<NoLog>();
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  std::shared_ptr<Rocks> rocks(new Rocks(path, std::make_shared<FailureLatch>(), SystemTime()));
  // A file that this user may not read is not damaged.
  if (auto there = Exists(path); !there) return Fail(std::move(there.error()));
  auto files = FrozenFiles::Freeze(path, QuarterOfFileLimit());
  if (!files && CheckCurrent(path))
    return Fail(ErrorCode::kCorruption, ExplainCorruption(path, files.error().message));
  if (!files) return Fail(std::move(files.error()));
  TACIT_RETURN_IF_ERROR(CheckTableTails(path));
  if (!options.paranoid_checks) (*files)->EndLogsAtDamage();
  rocks->env_ = rocksdb::NewCompositeEnv(*files);
  options.env = rocks->env_.get();
  const auto open = [&] {
    return rocksdb::DB::OpenForReadOnly(
        options, path,
        Descriptors(path, memory_bytes, rocks->retention_, ListShards(options, path)), &handles,
        &db);
  };
  auto status = open();
  if (status.IsCorruption()) {
    for (const LogDamage& log : TornLogs(path)) (*files)->EndAt(log.file, log.offset);
    status = open();
  }
  TACIT_RETURN_IF_ERROR(rocks->Adopt(status, db, handles));
  return rocks;
}

Result<std::shared_ptr<Rocks>> Rocks::OpenReadOnly(const std::string& path, uint64_t memory_bytes) {
  return OpenToRead(path, DatabaseOptions(memory_bytes, QuarterOfFileLimit()), memory_bytes);
}

Result<std::shared_ptr<Rocks>> Rocks::OpenDamaged(const std::string& path) {
  constexpr uint64_t kMemory = 64 * kMebibyte;
  rocksdb::DBOptions options = DatabaseOptions(kMemory, QuarterOfFileLimit());
  options.paranoid_checks = false;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  return OpenToRead(path, options, kMemory);
}

Result<bool> Rocks::Exists(const std::string& path) {
  const std::string current = path + "/CURRENT";
  const UniqueFd fd(open(current.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() >= 0) return true;
  if (MeansAbsent(errno)) return false;
  return Fail(FolderError(errno, "opening", current));
}

Rocks::~Rocks() {
  if (!db_) return;
  if (latch_->failed()) {
    // Its threads are stopped all the same: the process ends, and what they use ends before them.
    rocksdb::CancelAllBackgroundWork(db_.get(), /*wait=*/true);
    LeaveOpen(db_.release());
    LeaveOpen(env_.release());
    for (auto* handle : all_families()) LeaveOpen(handle);
    LeaveOpen(default_family_);
    return;
  }
  for (auto* handle : all_families()) db_->DestroyColumnFamilyHandle(handle);
  db_->DestroyColumnFamilyHandle(default_family_);
}

Result<std::optional<std::string>> Rocks::Get(Family which, std::string_view key) const {
  std::string sealed;
  const auto status = db_->Get({}, family(which), AsSlice(key), &sealed);
  if (status.IsNotFound()) return std::optional<std::string>{};
  const std::string what = fmt::format("{} of store {}", key, path_);
  TACIT_RETURN_IF_ERROR(ToStatus(status, "reading " + what));
  TACIT_ASSIGN(const std::string_view payload, Unseal(sealed, what));
  return std::optional<std::string>(payload);
}

Result<std::vector<std::pair<std::string, std::string>>> Rocks::Scan(
    Family which, std::string_view prefix) const {
  std::vector<std::pair<std::string, std::string>> found;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}, family(which)));
  for (it->Seek(AsSlice(prefix)); it->Valid() && it->key().starts_with(AsSlice(prefix));
       it->Next()) {
    const std::string what =
        fmt::format("a value of {} in store {}", kFamilyNames[static_cast<size_t>(which)], path_);
    TACIT_ASSIGN(const std::string_view payload, Unseal(it->value().ToStringView(), what));
    found.emplace_back(it->key().ToString(), payload);
  }
  TACIT_RETURN_IF_ERROR(ToStatus(it->status(), "reading store " + path_));
  return found;
}

Result<std::vector<std::string>> Rocks::ReadLedger(const rocksdb::Snapshot* snapshot,
                                                   uint64_t begin, uint64_t end) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options, family(Family::kLedger)));
  std::vector<std::string> entries;
  const std::string first = SequenceKey(begin);
  for (it->Seek(AsSlice(first)); it->Valid() && begin + entries.size() < end; it->Next()) {
    const uint64_t index = begin + entries.size();
    const std::string what = fmt::format("ledger entry {} of store {}", index, path_);
    if (SequenceOf(it->key().ToStringView()) != index)
      return Fail(ErrorCode::kCorruption, what + " is missing");
    TACIT_ASSIGN(const std::string_view payload, Unseal(it->value().ToStringView(), what));
    entries.emplace_back(payload);
  }
  TACIT_RETURN_IF_ERROR(ToStatus(it->status(), "reading store " + path_));
  if (begin + entries.size() < end)
    return Fail(ErrorCode::kCorruption, fmt::format("ledger entry {} of store {} is missing",
                                                    begin + entries.size(), path_));
  return entries;
}

Status Rocks::Latch(const rocksdb::Status& status, std::string_view doing) const {
  const Status verdict = ToStatus(status, fmt::format("{} store {}", doing, path_));
  if (!verdict) latch_->Set(verdict.error());
  return verdict;
}

Status Rocks::Write(rocksdb::WriteBatch& batch) const {
  TACIT_RETURN_IF_ERROR(latch_->status());
  return Latch(db_->Write({}, &batch), "writing");
}

Status Rocks::SyncLog() const {
  TACIT_RETURN_IF_ERROR(latch_->status());
  return Latch(db_->SyncWAL(), "syncing");
}

Status Rocks::WriteSynced(rocksdb::WriteBatch& batch) const {
  const MutexLock lock(log_mutex_);
  TACIT_RETURN_IF_ERROR(Write(batch));
  return SyncLog();
}

std::string SequenceKey(uint64_t number) { return KeyOf("", number); }

uint64_t SequenceOf(std::string_view key) {
  uint64_t number = 0;
  for (char byte : key) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

std::string LearnerKey(std::string_view prefix, uint16_t learner) { return KeyOf(prefix, learner); }

RowKey EncodeRowKey(const RowPlace& place) {
  RowKey key;
  key[0] = static_cast<char>(place.high >> 32);
  PutBigEndian(key.data() + 1, static_cast<uint32_t>(place.high));
  PutBigEndian(key.data() + 5, place.bucket);
  return key;
}

rocksdb::Options RowsFileOptions() {
  rocksdb::Options options(rocksdb::DBOptions(), FamilyOptions(nullptr, kMebibyte));
  options.file_checksum_gen_factory = MakeFileDigests();
  options.db_host_id = "";
  return options;
}

}  // namespace tacit::store
