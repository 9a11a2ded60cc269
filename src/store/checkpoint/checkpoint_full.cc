#include "store/checkpoint/checkpoint_full.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include "store/disk/file_digest.h"
#include "store/disk/folder.h"
#include "store/disk/row_families.h"

namespace tacit::store {
namespace {

constexpr auto kGlance = std::chrono::milliseconds(2);
// A store that is written to faster than RocksDB writes out never has all in files; what is not is
// copied with its log.
constexpr int kMostGlances = 5000;

// The tables of the checkpoints in a folder, by their SHA-256. Those of damaged manifests are left
// out. Whether the bytes still are what they were is for `verify` to find out.
class OlderTables {
 public:
  explicit OlderTables(std::string parent) : parent_(std::move(parent)) {}
  // The path of a table with these bytes; nothing if there is none.
  std::optional<std::string> Find(const Digest& digest) {
    if (!listed_) List();
    const auto found = tables_.find(digest);
    return found == tables_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void List() {
    listed_ = true;
    const auto places = ListCheckpoints(parent_, nullptr);
    if (!places) return;
    for (const CheckpointPlace& place : *places)
      for (const CheckpointFile& file : place.manifest.files)
        if (IsTableName(file.name)) tables_[file.sha256] = place.folder + "/" + file.name;
  }

  const std::string parent_;
  bool listed_ = false;
  std::map<Digest, std::string> tables_;
};

// Links a file that never changes again, or copies it to another disk.
Result<Digest> LinkTable(const rocksdb::LiveFileStorageInfo& file, const std::string& from,
                         const std::string& to, OlderTables* older, CheckpointMade* made) {
  const std::optional<Digest> recorded = RecordedDigest(file);
  if (link(from.c_str(), to.c_str()) == 0) {
    if (recorded) return *recorded;
    made->files_read += 1;
    return DigestOfFile(from, file.size);
  }
  if (errno != EXDEV && errno != EPERM && errno != EMLINK)
    return Fail(FolderError(errno, "linking", to));
  if (recorded) {
    const auto same = older->Find(*recorded);
    if (same && link(same->c_str(), to.c_str()) == 0) {
      made->files_shared += 1;
      return *recorded;
    }
  }
  made->files_read += 1;
  TACIT_ASSIGN(const Digest digest, CopyFile(from, to, file.size));
  if (recorded && digest != *recorded)
    return Fail(ErrorCode::kCorruption,
                fmt::format("{} does not match the SHA-256 it was written with: the store is "
                            "damaged",
                            from));
  return digest;
}

Result<Digest> CopySmallFile(const rocksdb::LiveFileStorageInfo& file, const std::string& from,
                             const std::string& to) {
  if (file.replacement_contents.empty()) return CopyFile(from, to, file.size);
  TACIT_RETURN_IF_ERROR(WriteNewFile(to, file.replacement_contents));
  return Sha256().Update(file.replacement_contents).Finish();
}

bool IsWritingOut(const Rocks& rocks) {
  for (auto* family : rocks.all_families()) {
    uint64_t waiting = 0;
    if (rocks.db().GetIntProperty(family, rocksdb::DB::Properties::kNumImmutableMemTable,
                                  &waiting) &&
        waiting > 0)
      return true;
  }
  return false;
}

// Adds the time of its life to a sum.
class PauseMeter {
 public:
  explicit PauseMeter(double* sum_ms) : sum_ms_(sum_ms) {}
  ~PauseMeter() {
    *sum_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_)
                    .count();
  }
  PauseMeter(const PauseMeter&) = delete;
  PauseMeter& operator=(const PauseMeter&) = delete;

 private:
  double* const sum_ms_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// RocksDB switches a family to new memory in this call and writes the old memory out on a thread of
// its own. The switch begins a new log, which is not allowed after a log has failed; the writing is
// no part of what the lock guards, and RocksDB has no call that waits for it alone. Returns false,
// and nothing is done, while RocksDB has stopped all writes because it has too much to write out.
Result<bool> SwitchMemory(const Rocks& rocks, rocksdb::ColumnFamilyHandle* family,
                          double* paused_ms) {
  const MutexLock lock(rocks.log_mutex());
  const PauseMeter pause(paused_ms);
  TACIT_RETURN_IF_ERROR(rocks.LogStatus());
  rocksdb::FlushOptions options;
  options.wait = false;
  options.allow_write_stall = true;
  const rocksdb::Status status = rocks.db().Flush(options, family);
  if (status.IsTryAgain()) return false;
  TACIT_RETURN_IF_ERROR(ToStatus(status, "writing out store " + rocks.path()));
  return true;
}

// The file's name, with the folder inside the store that it is in.
std::string NameInStore(const Rocks& rocks, const rocksdb::LiveFileStorageInfo& file) {
  const std::string& store = rocks.path();
  std::string_view folder(file.directory);
  if (folder.starts_with(store)) folder.remove_prefix(store.size());
  while (folder.starts_with('/')) folder.remove_prefix(1);
  return NameIn(std::string(folder), file.relative_filename);
}

Status MakeFolderOf(const std::string& file) {
  std::error_code error;
  const auto folder = std::filesystem::path(file).parent_path();
  std::filesystem::create_directories(folder, error);
  return error ? Fail(FolderError(error.value(), "creating", folder)) : Status();
}

}  // namespace

std::optional<Digest> RecordedDigest(const rocksdb::LiveFileStorageInfo& file) {
  Digest digest;
  if (file.file_checksum_func_name != kFileDigestName || file.file_checksum.size() != digest.size())
    return std::nullopt;
  std::copy(file.file_checksum.begin(), file.file_checksum.end(), digest.begin());
  return digest;
}

CheckpointManifest DescribeView(CheckpointKind kind, const View& view,
                                const LearnerDirectory& directory, uint32_t shards) {
  CheckpointManifest manifest;
  manifest.kind = kind;
  manifest.lineage = view.lineage;
  manifest.commit = view.tip.seq;
  if (kind == CheckpointKind::kFull) manifest.term = view.terms->At(view.tip.seq);
  manifest.head = view.tip.head;
  manifest.ledger_entries = view.tip.ledger_entries;
  manifest.shards = shards;
  manifest.epsilon = view.tip.total.epsilon;
  manifest.delta = view.tip.total.delta;
  for (const LearnerRecord& record : directory.records()) {
    CheckpointLearner learner;
    learner.name = record.name;
    learner.model_fingerprint = record.model_fingerprint;
    for (const privacy::LedgerTotal& total : view.tip.learners) {
      if (total.learner != record.name) continue;
      learner.unit = total.unit;
      learner.epsilon = total.epsilon;
      learner.delta = total.delta;
      learner.steps = total.steps;
    }
    const auto tables = record.layout.space.tables();
    for (size_t t = 0; t < tables.size(); ++t)
      learner.tables.push_back(
          {tables[t].name, tables[t].rows, tables[t].dim, record.layout.state_floats[t]});
    manifest.learners.push_back(std::move(learner));
  }
  return manifest;
}

KeepFiles::KeepFiles(const Rocks& rocks) : rocks_(rocks) {
  (void)rocks.db().DisableFileDeletions();
}
KeepFiles::~KeepFiles() { (void)rocks_.db().EnableFileDeletions(/*force=*/false); }

Status WriteOutMemory(const Rocks& rocks, const CheckpointRequest& request, double* paused_ms) {
  int glances = kMostGlances;
  const auto families = rocks.all_families();
  for (size_t family = 0; family < families.size() && glances > 0;) {
    TACIT_ASSIGN(const bool switched, SwitchMemory(rocks, families[family], paused_ms));
    if (switched) {
      ++family;
      continue;
    }
    --glances;
    TACIT_RETURN_IF_ERROR(StillWanted(request));
    std::this_thread::sleep_for(kGlance);
  }
  for (; glances > 0 && IsWritingOut(rocks); --glances) {
    {
      const MutexLock lock(rocks.log_mutex());
      TACIT_RETURN_IF_ERROR(rocks.LogStatus());
    }
    TACIT_RETURN_IF_ERROR(StillWanted(request));
    std::this_thread::sleep_for(kGlance);
  }
  return {};
}

Result<LiveFiles> ListLiveFiles(const Rocks& rocks) {
  const MutexLock lock(rocks.log_mutex());
  TACIT_RETURN_IF_ERROR(rocks.LogStatus());
  rocksdb::LiveFilesStorageInfoOptions options;
  options.include_checksum_info = true;
  options.wal_size_for_flush = std::numeric_limits<uint64_t>::max();  // never
  LiveFiles files;
  TACIT_RETURN_IF_ERROR(ToStatus(rocks.db().GetLiveFilesStorageInfo(options, &files),
                                 "listing the files of store " + rocks.path()));
  return files;
}

Result<std::vector<CheckpointFile>> LinkFiles(const Rocks& rocks, const LiveFiles& files,
                                              const CheckpointRequest& request,
                                              const std::string& folder, CheckpointMade* made) {
  OlderTables older(request.parent);
  std::vector<CheckpointFile> linked;
  for (const rocksdb::LiveFileStorageInfo& file : files) {
    // No reader needs RocksDB's options, which name this machine's folders.
    if (file.file_type == rocksdb::kOptionsFile) continue;
    TACIT_RETURN_IF_ERROR(StillWanted(request));
    const std::string from = file.directory + "/" + file.relative_filename;
    const std::string name = NameInStore(rocks, file);
    const std::string to = folder + "/" + name;
    TACIT_RETURN_IF_ERROR(MakeFolderOf(to));
    const bool table =
        file.file_type == rocksdb::kTableFile || file.file_type == rocksdb::kBlobFile;
    CheckpointFile& one = linked.emplace_back();
    one.name = name;
    one.bytes = file.size;
    TACIT_ASSIGN(one.sha256,
                 table ? LinkTable(file, from, to, &older, made) : CopySmallFile(file, from, to));
  }
  return linked;
}

}  // namespace tacit::store
