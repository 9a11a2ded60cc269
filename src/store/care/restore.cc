#include "store/care/restore.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crash_point.h"
#include "base/files/is_there.h"
#include "base/text.h"
#include "store/disk/file_digest.h"
#include "store/disk/folder.h"
#include "store/disk/rocks.h"
#include "store/disk/row_families.h"
#include "store/disk/seal.h"
#include "store/disk/unfinished_restore.h"
#include "store/growth.h"
#include "store/rows/learner_directory.h"
#include "store/users/allocation.h"
#include "store/users/allowance.h"
#include "store/users/forgotten.h"
#include "store/users/user_values.h"
#include "store/view/load.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

Status FromErrorCode(const std::error_code& error, std::string_view doing,
                     const std::string& path) {
  if (!error) return {};
  return Fail(ErrorCode::kIo, fmt::format("{} {}: {}", doing, path, error.message()));
}

Status CheckFree(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error) || fs::is_empty(path, error)) return {};
  return Fail(
      ErrorCode::kRefused,
      fmt::format("{} is there already: a restore makes a new store. Move what is lost "
                  "out of the way first, to a place where nothing starts it (mv {} {}.lost)",
                  path, path, path));
}

// Makes the folder, and in it those of the shards, which are spread over the paths.
Status MakeEmpty(const std::string& folder, const std::vector<RowFamily>& shards,
                 const std::vector<std::string>& paths) {
  TACIT_RETURN_IF_ERROR(RemoveStore(folder));  // what a restore left
  TACIT_RETURN_IF_ERROR(FromErrorCode(MakeOwnFolder(folder), "making", folder));
  for (const RowFamily& shard : shards) TACIT_RETURN_IF_ERROR(MakeRowFolder(folder, shard, paths));
  return {};
}

// The shards with these folders.
std::vector<RowFamily> ShardsOf(const std::vector<std::string>& folders) {
  std::vector<RowFamily> shards;
  for (const std::string& folder : folders)
    if (const auto shard = RowFamilyOfFolder(folder)) shards.push_back(*shard);
  return shards;
}

Status SyncFolders(const std::string& store) {
  TACIT_ASSIGN(const auto folders, FoldersOf(store));
  for (const std::string& folder : folders)
    TACIT_RETURN_IF_ERROR(SyncFolder(NameIn(store, folder)));
  return {};
}

// Tables never change, so that they may be shared.
bool LinkIfTable(const std::string& name, const std::string& from, const std::string& to) {
  if (!IsTableName(name)) return false;
  std::error_code error;
  fs::create_hard_link(from, to, error);
  return !error;
}

Status CopyCheckpoint(const std::string& from, const std::string& to,
                      const std::vector<std::string>& paths) {
  TACIT_ASSIGN(const CheckpointManifest manifest,
               CheckCheckpoint(from, CheckpointCheck::kEveryByte));
  if (manifest.kind != CheckpointKind::kFull)
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{} is a release checkpoint: it lacks what learning resumes from", from));
  TACIT_RETURN_IF_ERROR(MakeEmpty(to, Rocks::ShardsAt(from), paths));
  for (const CheckpointFile& file : manifest.files) {
    const std::string source = from + "/" + file.name, target = to + "/" + file.name;
    if (LinkIfTable(file.name, source, target)) continue;
    TACIT_ASSIGN(const Digest copied, CopyFile(source, target, file.bytes));
    if (copied != file.sha256)
      return Fail(ErrorCode::kCorruption, fmt::format("{} changed while it was copied", source));
  }
  return SyncFolders(to);
}

// Copies the files of a store that is closed. RocksDB makes the lock and its options anew.
Status CopyStore(const std::string& from, const std::string& to,
                 const std::vector<std::string>& paths) {
  TACIT_RETURN_IF_ERROR(CheckClosed(from));
  TACIT_ASSIGN(const auto folders, FoldersOf(from));
  TACIT_RETURN_IF_ERROR(MakeEmpty(to, ShardsOf(folders), paths));
  std::error_code error;
  for (const std::string& folder : folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(NameIn(from, folder), error)) {
      const std::string file = entry.path().filename(), name = NameIn(folder, file);
      if (!entry.is_regular_file(error) || file == "LOCK" || file.starts_with("OPTIONS-")) continue;
      if (LinkIfTable(name, entry.path(), to + "/" + name)) continue;
      TACIT_ASSIGN(const Digest copied,
                   CopyFile(entry.path(), to + "/" + name, entry.file_size(error)));
      (void)copied;
    }
    TACIT_RETURN_IF_ERROR(FromErrorCode(error, "reading", NameIn(from, folder)));
  }
  return SyncFolders(to);
}

std::string DrawLineage() {
  std::array<uint8_t, 16> bytes;
  TACIT_CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1, "the system has no randomness");
  return ToHex(bytes);
}

// Gives the copy a lineage of its own, and remembers the one that it continues.
Status PutLineage(const Rocks& rocks, const Loaded& loaded, const RestoreRequest& request,
                  const std::string& lineage) {
  std::vector<Ancestor> ancestors = loaded.ancestors;
  ancestors.push_back(
      {.lineage = loaded.lineage, .through = request.through, .head = request.head});
  rocksdb::WriteBatch batch;
  auto* family = rocks.family(Family::kMeta);
  batch.Put(family, AsSlice(meta::kLineage), Seal(lineage));
  batch.Put(family, AsSlice(meta::kAncestors), Seal(EncodeAncestors(ancestors)));
  return rocks.WriteSynced(batch);
}

// Charges users for the gap.
Status PutUsers(const Rocks& rocks, uint16_t key, const LearnerGap& gap) {
  switch (gap.users) {
    case LearnerGap::Users::kNone:
      return {};
    case LearnerGap::Users::kCounted:
      return AddGapOf(rocks, key, gap.gap, gap.counted, gap.step);
    case LearnerGap::Users::kAll:
      return AddGap(rocks, key, gap.gap, gap.step);
  }
  return {};
}

// Marks the histories as read up to the new position: what the lost commits appended is lost.
Status PutHistoryStep(const Rocks& rocks, uint16_t key, uint64_t step) {
  TACIT_ASSIGN(const auto kept, rocks.Get(Family::kHistories, LearnerKey("", key)));
  if (!kept) return {};
  rocksdb::WriteBatch batch;
  PutUserStep(rocks, Family::kHistories, key, step, &batch);
  return rocks.WriteSynced(batch);
}

// Finds a learner's key by its name, or by the one that it had before.
std::optional<uint16_t> KeyOf(const Loaded& loaded, const std::string& name,
                              const std::map<std::string, std::string>& renames) {
  const auto key_of = [&](const std::string& wanted) -> std::optional<uint16_t> {
    for (size_t key = 0; key < loaded.records.size(); ++key)
      if (loaded.records[key].name == wanted) return static_cast<uint16_t>(key);
    return std::nullopt;
  };
  if (const auto key = key_of(name)) return key;
  const auto rename = renames.find(name);
  return rename == renames.end() ? std::nullopt : key_of(rename->second);
}

// Gives each configured learner that the copy does not know a record, as a start does: the counts
// of its users need its key. Returns whether there was one.
Result<bool> PutNewLearners(const Rocks& rocks, const Loaded& loaded, const StoreOptions& options) {
  const std::vector<uint8_t> trained = TrainedOf(loaded.MakeView());
  LearnerDirectory directory(loaded.shards, loaded.records);
  TACIT_ASSIGN(const auto matched,
               directory.Match(options.learners, trained, loaded.forms, options.renames));
  rocksdb::WriteBatch batch;
  for (const uint16_t key : matched.changed)
    if (key >= loaded.records.size())
      batch.Put(rocks.family(Family::kMeta), LearnerKey(meta::kLearnerPrefix, key),
                Seal(EncodeLearner(directory.records()[key])));
  if (batch.Count() == 0) return false;
  TACIT_RETURN_IF_ERROR(rocks.WriteSynced(batch));
  return true;
}

// Takes over the counts of each learner that both know.
Status TakeOverUsers(const Rocks& rocks, const Loaded& loaded, const std::string& folder,
                     const std::map<std::string, std::string>& renames) {
  TACIT_ASSIGN(const auto from, Rocks::OpenDamaged(folder));
  TACIT_ASSIGN(const Loaded later, LoadAccount(*from));
  if (later.lineage != loaded.lineage || later.user_key != loaded.user_key)
    return Fail(ErrorCode::kRefused, fmt::format("{} counts the users of another store", folder));
  for (size_t key = 0; key < loaded.records.size(); ++key) {
    // The later copy has the learner under the name of here, or under one that it got since.
    auto there = KeyOf(later, loaded.records[key].name, {});
    for (const auto& [now, before] : renames)
      if (!there && before == loaded.records[key].name) there = KeyOf(later, now, {});
    if (there)
      TACIT_RETURN_IF_ERROR(TakeOverCounts(rocks, static_cast<uint16_t>(key), *from, *there));
  }
  return {};
}

// Changes what no commit changes. Nothing has the store's name yet, so it need not be one batch.
Result<Restored> TakeOver(const RestoreRequest& request, const std::string& path) {
  const StoreOptions& options = request.store;
  TACIT_ASSIGN(const auto rocks,
               Rocks::Open(path, options.memory_bytes, std::make_shared<FailureLatch>(),
                           options.clock, options.open_files_most));
  TACIT_RETURN_IF_ERROR(BringUp(*rocks, options.format_steps));
  TACIT_ASSIGN(Loaded loaded, Load(*rocks));
  if (loaded.fresh() || loaded.release || loaded.replica)
    return Fail(ErrorCode::kRefused, fmt::format("{} has no commit to go on from", request.from));
  TACIT_ASSIGN(const bool knows_more, PutNewLearners(*rocks, loaded, options));
  if (knows_more) {
    TACIT_ASSIGN(loaded, Load(*rocks));
  }
  TACIT_RETURN_IF_ERROR(ForgetAllocations(*rocks));
  TACIT_RETURN_IF_ERROR(ForgetAgain(*rocks, loaded.records.size(), request.forgotten));
  if (!request.counts_of.empty())
    TACIT_RETURN_IF_ERROR(TakeOverUsers(*rocks, loaded, request.counts_of, options.renames));
  for (const LearnerGap& gap : request.gaps) {
    const std::string& name = options.learners[gap.learner.value].name;
    const auto key = KeyOf(loaded, name, options.renames);
    TACIT_CHECK(key.has_value(), "a learner that got no record");
    TACIT_RETURN_IF_ERROR(PutUsers(*rocks, *key, gap));
    TACIT_RETURN_IF_ERROR(PutHistoryStep(*rocks, *key, gap.step));
  }
  TACIT_RETURN_IF_ERROR(PutLineage(*rocks, loaded, request, DrawLineage()));
  return Restored{
      .from_lineage = loaded.lineage, .from_commit = loaded.tip.seq, .lineage = {}, .commit = {}};
}

LearnerCommit CommitOf(const LearnerGap& gap, std::vector<privacy::CommitCharge> charges) {
  return {.learner = gap.learner, .position = gap.position, .charges = std::move(charges)};
}

// Charges learners in a commit like any other.
Status Charge(StoreOptions options, std::vector<LearnerCommit> learners, Restored* restored) {
  TACIT_ASSIGN(const auto store, Store::Open(std::move(options)));
  CommitRequest commit{.learners = std::move(learners),
                       .source_identity = store->source_identity()};
  if (!commit.learners.empty()) TACIT_RETURN_IF_ERROR(store->Commit(std::move(commit), {}));
  TACIT_RETURN_IF_ERROR(store->Settle());
  const auto snapshot = store->Latest();
  restored->lineage = snapshot->lineage();
  restored->commit = snapshot->version();
  restored->epsilon = snapshot->total().epsilon;
  restored->delta = snapshot->total().delta;
  return {};
}

// Charges the gap: first what other bounds were in force for, each in a commit under those.
Status ChargeGap(const RestoreRequest& request, const std::string& path, Restored* restored) {
  StoreOptions options = request.store;
  options.path = path;
  options.witness.clear();
  options.mark.clear();
  // The lost store had this configuration, and the copy is left as it is.
  options.may_lose = true;
  size_t rounds = 0;
  for (const LearnerGap& gap : request.gaps) rounds = std::max(rounds, gap.earlier.size());
  for (size_t round = 0; round < rounds; ++round) {
    StoreOptions of_then = options;
    std::vector<LearnerCommit> learners;
    for (const LearnerGap& gap : request.gaps) {
      if (round >= gap.earlier.size()) continue;
      of_then.learners[gap.learner.value].promise.bounds = gap.earlier[round].bounds;
      learners.push_back(CommitOf(gap, gap.earlier[round].charges));
    }
    TACIT_RETURN_IF_ERROR(Charge(std::move(of_then), std::move(learners), restored));
  }
  std::vector<LearnerCommit> learners;
  for (const LearnerGap& gap : request.gaps) learners.push_back(CommitOf(gap, gap.charges));
  return Charge(std::move(options), std::move(learners), restored);
}

// Gives the finished store its name. An older copy there changes places with it.
Status GiveName(const std::string& work, const std::string& path, bool replaces) {
  std::error_code error;
  if (replaces) {
    if (renameat2(AT_FDCWD, work.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0)
      error.assign(errno, std::generic_category());
  } else {
    fs::rename(work, path, error);
  }
  return FromErrorCode(error, "giving its name to", path);
}

// Makes the store in the folder of work, and gives it its name.
Result<Restored> MakeAnew(const RestoreRequest& request, const std::string& work, bool replaces) {
  const std::vector<std::string>& paths = request.store.shard_paths;
  TACIT_RETURN_IF_ERROR(IsCheckpoint(request.from) ? CopyCheckpoint(request.from, work, paths)
                                                   : CopyStore(request.from, work, paths));
  CrashPoint("restore.copied");
  TACIT_ASSIGN(Restored restored, TakeOver(request, work));
  CrashPoint("restore.charged_users");
  TACIT_RETURN_IF_ERROR(ChargeGap(request, work, &restored));
  CrashPoint("restore.committed");
  TACIT_RETURN_IF_ERROR(GiveName(work, request.store.path, replaces));
  return restored;
}

}  // namespace

Result<Restored> RestoreStore(const RestoreRequest& request) {
  const std::string& path = request.store.path;
  const bool replaces = request.from == path;
  TACIT_RETURN_IF_ERROR(replaces ? CheckOwner(path) : CheckFree(path));
  const std::string work = WorkFolder(path);
  auto restored = MakeAnew(request, work, replaces);
  if (!restored) {
    // The copy holds histories and keys.
    if (const Status removed = RemoveStore(work); !removed)
      restored.error().message += fmt::format("; and {}: remove it", removed.error().message);
    return restored;
  }
  TACIT_RETURN_IF_ERROR(SyncFolder(fs::absolute(work).parent_path()));
  CrashPoint("restore.named");
  if (replaces) TACIT_RETURN_IF_ERROR(RemoveStore(work));
  return restored;
}

}  // namespace tacit::store
