#include "store/rocks.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <filesystem>

#include "base/check.h"
#include "base/log.h"
#include "store/history_table.h"
#include "store/seal.h"

#ifdef __SANITIZE_ADDRESS__
extern "C" void __lsan_ignore_object(const void* object);  // of the leak checker's own interface
#endif

namespace tacit::store {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr size_t kBlockBytes = 4096;
constexpr std::array<const char*, kFamilies> kFamilyNames = {
    "rows", "deltas", "offsets", "ledger", "meta", "allowance", "histories"};

// Puts an error of RocksDB's own threads where the next commit finds it, and keeps RocksDB from
// carrying on by itself: after a failure the store waits for a person.
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

// RocksDB's own words go to our log. A log file of its own on a full disk is an abort: its writer
// may not be used again after a failed write, and is. The log is held on to: the threads of a
// database that is left open may speak while the process ends.
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
    log_->log(bad ? spdlog::level::err : spdlog::level::debug, "store: {}", line);
  }

 private:
  const std::shared_ptr<spdlog::logger> log_ = spdlog::default_logger();
};

// A reader that does not own the store leaves no log file in it.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// f32 rows do not compress; 4 KB blocks hold what one random row read must fetch anyway.
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

// Deltas are megabytes long, live for a few commits and are read at open only. Their blocks would
// throw rows out of the cache; in blob files of their own a compaction drops them without copying.
rocksdb::ColumnFamilyOptions DeltaOptions(uint64_t write_buffer_bytes) {
  rocksdb::ColumnFamilyOptions options = FamilyOptions(nullptr, write_buffer_bytes);
  options.enable_blob_files = true;
  options.min_blob_size = 64 << 10;
  return options;
}

// Every file is looked through once a day, so that what is too old goes although nobody comes back.
rocksdb::ColumnFamilyOptions HistoryOptions(rocksdb::ColumnFamilyOptions options,
                                            const Clock& clock) {
  constexpr uint64_t kDaySeconds = 86400;
  options.compaction_filter_factory = MakeHistoryFilter(clock);
  options.periodic_compaction_seconds = kDaySeconds;
  return options;
}

rocksdb::ColumnFamilyOptions OptionsOf(Family family, std::shared_ptr<rocksdb::Cache> cache,
                                       uint64_t buffers, const Clock& clock) {
  if (family == Family::kDeltas) return DeltaOptions(buffers);
  auto options = FamilyOptions(std::move(cache), std::min(buffers, 8 * kMiB));
  return family == Family::kHistories ? HistoryOptions(std::move(options), clock) : options;
}

const Clock& SystemTime() {
  static const SystemClock clock;
  return clock;
}

// Three quarters of the memory cache blocks, one quarter holds memtables.
std::vector<rocksdb::ColumnFamilyDescriptor> Descriptors(uint64_t memory_bytes,
                                                         const Clock& clock) {
  const uint64_t buffers = memory_bytes / 4;
  const auto cache =
      rocksdb::HyperClockCacheOptions(memory_bytes - buffers, kBlockBytes).MakeSharedCache();
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, FamilyOptions(cache, kMiB));
  for (size_t i = 0; i < kFamilies; ++i)
    families.emplace_back(kFamilyNames[i],
                          OptionsOf(static_cast<Family>(i), cache, buffers, clock));
  return families;
}

// With the default recovery mode one flipped bit in the middle of the log opens without an error
// and loses every synced commit behind it; this mode forgives only a record cut short at the end.
rocksdb::DBOptions DatabaseOptions(uint64_t memory_bytes) {
  rocksdb::DBOptions options;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.db_write_buffer_size = memory_bytes / 4;
  options.max_total_wal_size = std::clamp(memory_bytes, 64 * kMiB, 512 * kMiB);
  options.wal_bytes_per_sync = kMiB;
  options.max_background_jobs = 2;
  options.max_open_files = -1;
  options.info_log_level = rocksdb::WARN_LEVEL;
  options.info_log = std::make_shared<OurLog>();
  // After a failure nothing may touch the files again: a new start is what heals a store.
  options.max_bgerror_resume_count = 0;
  return options;
}

template <class Int>
void PutBigEndian(char* out, Int value) {
  for (size_t i = 0; i < sizeof(Int); ++i)
    out[i] = static_cast<char>(value >> (8 * (sizeof(Int) - 1 - i)));
}

// Never to be freed, and that is meant.
void LeaveOpen([[maybe_unused]] const void* object) {
#ifdef __SANITIZE_ADDRESS__
  __lsan_ignore_object(object);
#endif
}

// Opening replays the log into a new table file, and writes some small ones. Debian's RocksDB meets
// a full disk there with an assertion, which would end the process without a word.
Status CheckRoom(const std::string& path) {
  uint64_t needed = 16 * kMiB;
  std::error_code error;
  for (std::filesystem::directory_iterator file(path, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;
    if (file->path().extension() != ".log") continue;
    const uint64_t bytes = file->file_size(gone);
    if (!gone) needed += bytes;
  }
  const auto disk = std::filesystem::space(path, error);
  if (error || disk.available >= needed) return {};
  return Fail(
      ErrorCode::kIo,
      fmt::format("store {}: its disk has {:.1f} MiB left, and opening it may take {:.1f}", path,
                  static_cast<double>(disk.available) / kMiB, static_cast<double>(needed) / kMiB));
}

bool IsLockFailure(const rocksdb::Status& status) {
  return status.IsIOError() && status.ToString().find("lock") != std::string::npos;
}

}  // namespace

Status ToStatus(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) return {};
  ErrorCode code = ErrorCode::kInternal;
  if (status.IsCorruption()) code = ErrorCode::kCorruption;
  if (status.IsIOError() || status.IsNoSpace()) code = ErrorCode::kIo;
  if (status.IsNotFound() || status.IsPathNotFound()) code = ErrorCode::kNotFound;
  return Fail(code, fmt::format("{}: {}", doing, status.ToString()));
}

Status Rocks::Adopt(rocksdb::Status status, rocksdb::DB* db,
                    const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  if (IsLockFailure(status))
    return Fail(ErrorCode::kUnavailable,
                fmt::format("store {} is locked: another process has it open", path_));
  TACIT_RETURN_IF_ERROR(ToStatus(status, "opening store " + path_));
  db_.reset(db);
  default_family_ = handles[0];
  std::copy(handles.begin() + 1, handles.end(), families_.begin());
  return {};
}

Result<std::shared_ptr<Rocks>> Rocks::Open(const std::string& path, uint64_t memory_bytes,
                                           std::shared_ptr<FailureLatch> latch,
                                           const Clock* clock) {
  TACIT_CHECK(memory_bytes >= 32 * kMiB, "a store needs at least 32 MiB");
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return Fail(ErrorCode::kIo, fmt::format("creating store {}: {}", path, error.message()));
  TACIT_RETURN_IF_ERROR(CheckRoom(path));
  rocksdb::DBOptions options = DatabaseOptions(memory_bytes);
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.listeners.push_back(std::make_shared<ErrorListener>(path, latch));
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const Clock& time = clock != nullptr ? *clock : SystemTime();
  const auto status =
      rocksdb::DB::Open(options, path, Descriptors(memory_bytes, time), &handles, &db);
  std::shared_ptr<Rocks> rocks(new Rocks(path, std::move(latch), time));
  TACIT_RETURN_IF_ERROR(rocks->Adopt(status, db, handles));
  return rocks;
}

Result<std::shared_ptr<Rocks>> Rocks::OpenReadOnly(const std::string& path) {
  constexpr uint64_t kReaderMemory = 64 * kMiB;
  rocksdb::DBOptions options = DatabaseOptions(kReaderMemory);
  options.info_log = std::make_shared<NoLog>();
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const auto status = rocksdb::DB::OpenForReadOnly(
      options, path, Descriptors(kReaderMemory, SystemTime()), &handles, &db);
  std::shared_ptr<Rocks> rocks(new Rocks(path, std::make_shared<FailureLatch>(), SystemTime()));
  TACIT_RETURN_IF_ERROR(rocks->Adopt(status, db, handles));
  return rocks;
}

bool Rocks::Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path + "/CURRENT", error);
}

Rocks::~Rocks() {
  if (!db_) return;
  if (latch_->failed()) {
    LeaveOpen(db_.release());
    for (auto* handle : families_) LeaveOpen(handle);
    LeaveOpen(default_family_);
    return;
  }
  for (auto* handle : families_) db_->DestroyColumnFamilyHandle(handle);
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
  const auto lock = LockLog();
  TACIT_RETURN_IF_ERROR(Write(batch));
  return SyncLog();
}

std::string SequenceKey(uint64_t number) {
  std::string key(sizeof(number), '\0');
  PutBigEndian(key.data(), number);
  return key;
}

uint64_t SequenceOf(std::string_view key) {
  uint64_t number = 0;
  for (char byte : key) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

std::string LearnerKey(std::string_view prefix, uint16_t learner) {
  std::string key(prefix);
  key.resize(prefix.size() + sizeof(learner));
  PutBigEndian(key.data() + prefix.size(), learner);
  return key;
}

RowKey EncodeRowKey(const RowPlace& place) {
  RowKey key;
  key[0] = static_cast<char>(place.high >> 32);
  PutBigEndian(key.data() + 1, static_cast<uint32_t>(place.high));
  PutBigEndian(key.data() + 5, place.bucket);
  return key;
}

rocksdb::Options RowsFileOptions() {
  return rocksdb::Options(rocksdb::DBOptions(), FamilyOptions(nullptr, kMiB));
}

}  // namespace tacit::store
