#include "store/restore.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crash_point.h"
#include "base/text.h"
#include "store/allocation.h"
#include "store/allowance.h"
#include "store/file_digest.h"
#include "store/load.h"
#include "store/rocks.h"
#include "store/seal.h"
#include "store/user_values.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

Status FromErrorCode(const std::error_code& error, std::string_view doing,
                     const std::string& path) {
  if (!error) return {};
  return Fail(ErrorCode::kIo, fmt::format("{} {}: {}", doing, path, error.message()));
}

// The folder in which a restore works, until it has the store's name.
std::string WorkFolder(const std::string& store) { return store + ".restoring"; }

Status CheckFree(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error) || fs::is_empty(path, error)) return {};
  return Fail(
      ErrorCode::kRefused,
      fmt::format("{} is there already: a restore makes a new store. Move what is lost "
                  "out of the way first, to a place where nothing starts it (mv {} {}.lost)",
                  path, path, path));
}

// Puts the checkpoint's files into a new folder. Tables never change, so that they may be shared.
Status CopyFiles(const std::string& from, const CheckpointManifest& manifest,
                 const std::string& to) {
  std::error_code error;
  fs::remove_all(to, error);
  TACIT_RETURN_IF_ERROR(FromErrorCode(error, "removing what a restore left in", to));
  fs::create_directories(to, error);
  TACIT_RETURN_IF_ERROR(FromErrorCode(error, "making", to));
  for (const CheckpointFile& file : manifest.files) {
    const std::string source = from + "/" + file.name, target = to + "/" + file.name;
    const bool table = file.name.ends_with(".sst") || file.name.ends_with(".blob");
    std::error_code linked;
    if (table) fs::create_hard_link(source, target, linked);
    if (table && !linked) continue;
    TACIT_ASSIGN(const Digest copied, CopyFile(source, target, file.bytes));
    if (copied != file.sha256)
      return Fail(ErrorCode::kCorruption, fmt::format("{} changed while it was copied", source));
  }
  return SyncFolder(to);
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
  ByteWriter format;
  format.Put(kRestoredFormat);
  rocksdb::WriteBatch batch;
  auto* family = rocks.family(Family::kMeta);
  batch.Put(family, AsSlice(meta::kFormat), Seal(format.bytes()));
  batch.Put(family, AsSlice(meta::kLineage), Seal(lineage));
  batch.Put(family, AsSlice(meta::kAncestors), Seal(EncodeAncestors(ancestors)));
  return rocks.WriteSynced(batch);
}

// Charges all users for the gap.
Status PutUsers(const Rocks& rocks, const Loaded& loaded, uint16_t key, const LearnerGap& gap) {
  TACIT_ASSIGN(const uint32_t most, CountMostUses(rocks, key));
  const uint32_t before = std::max(most, loaded.most_uses[key].value_or(0));
  TACIT_RETURN_IF_ERROR(
      AddGap(rocks, key, {.steps = gap.user_steps, .most = gap.most_uses, .period = gap.period},
             gap.step));
  ByteWriter value;
  value.Put(std::max(before, gap.most_uses));
  rocksdb::WriteBatch batch;
  batch.Put(rocks.family(Family::kMeta), LearnerKey(meta::kMostUsesPrefix, key),
            Seal(value.bytes()));
  return rocks.WriteSynced(batch);
}

// Marks the histories as read up to the new position: what the lost commits appended is lost.
Status PutHistoryStep(const Rocks& rocks, uint16_t key, uint64_t step) {
  TACIT_ASSIGN(const auto kept, rocks.Get(Family::kHistories, LearnerKey("", key)));
  if (!kept) return {};
  rocksdb::WriteBatch batch;
  PutUserStep(rocks, Family::kHistories, key, step, &batch);
  return rocks.WriteSynced(batch);
}

// Finds the learner's key in the store by its name.
Result<uint16_t> KeyOf(const Loaded& loaded, const std::string& name) {
  for (size_t key = 0; key < loaded.records.size(); ++key)
    if (loaded.records[key].name == name) return static_cast<uint16_t>(key);
  return Fail(ErrorCode::kRefused,
              fmt::format("learner '{}' went on after the checkpoint, which does not know it: "
                          "restore a newer one",
                          name));
}

// Changes what no commit changes. Nothing has the store's name yet, so it need not be one batch.
Status TakeOver(const RestoreRequest& request, const CheckpointManifest& manifest,
                const std::string& path, const std::string& lineage) {
  const StoreOptions& options = request.store;
  TACIT_ASSIGN(const auto rocks,
               Rocks::Open(path, options.memory_bytes, std::make_shared<FailureLatch>(),
                           options.clock, options.open_files_most));
  TACIT_ASSIGN(const Loaded loaded, Load(*rocks));
  if (loaded.tip.seq != manifest.commit || loaded.tip.head != manifest.head ||
      loaded.lineage != manifest.lineage)
    return Fail(ErrorCode::kCorruption,
                fmt::format("checkpoint {} holds commit {}, its manifest says {}",
                            request.checkpoint, loaded.tip.seq.value, manifest.commit.value));
  TACIT_RETURN_IF_ERROR(ForgetAllocations(*rocks));
  for (const LearnerGap& gap : request.gaps) {
    TACIT_ASSIGN(const uint16_t key, KeyOf(loaded, options.learners[gap.learner.value].name));
    if (gap.of_users) TACIT_RETURN_IF_ERROR(PutUsers(*rocks, loaded, key, gap));
    TACIT_RETURN_IF_ERROR(PutHistoryStep(*rocks, key, gap.step));
  }
  return PutLineage(*rocks, loaded, request, lineage);
}

// Charges the gap in a commit like any other.
Result<Restored> CommitGap(const RestoreRequest& request, const std::string& path) {
  StoreOptions options = request.store;
  options.path = path;
  options.witness.clear();
  options.mark.clear();
  TACIT_ASSIGN(const auto store, Store::Open(std::move(options)));
  CommitRequest commit{.learners = {}, .source_identity = store->source_identity()};
  for (const LearnerGap& gap : request.gaps)
    commit.learners.push_back({.learner = gap.learner,
                               .rows = nullptr,
                               .dense = nullptr,
                               .position = gap.position,
                               .charges = gap.charges});
  if (!commit.learners.empty()) TACIT_RETURN_IF_ERROR(store->Commit(std::move(commit), {}));
  TACIT_RETURN_IF_ERROR(store->Settle());
  const auto snapshot = store->Latest();
  return Restored{.checkpoint = {},
                  .lineage = snapshot->lineage(),
                  .commit = snapshot->version(),
                  .epsilon = snapshot->total().epsilon,
                  .delta = snapshot->total().delta};
}

}  // namespace

Result<Restored> RestoreCheckpoint(const RestoreRequest& request) {
  const std::string& path = request.store.path;
  TACIT_RETURN_IF_ERROR(CheckFree(path));
  TACIT_ASSIGN(const CheckpointManifest manifest,
               CheckCheckpoint(request.checkpoint, CheckpointCheck::kEveryByte));
  if (manifest.kind != CheckpointKind::kFull)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} is a release checkpoint: it lacks what learning resumes from",
                            request.checkpoint));
  const std::string work = WorkFolder(path);
  TACIT_RETURN_IF_ERROR(CopyFiles(request.checkpoint, manifest, work));
  CrashPoint("restore.copied");
  TACIT_RETURN_IF_ERROR(TakeOver(request, manifest, work, DrawLineage()));
  CrashPoint("restore.charged_users");
  TACIT_ASSIGN(Restored restored, CommitGap(request, work));
  CrashPoint("restore.committed");
  std::error_code error;
  fs::rename(work, path, error);
  TACIT_RETURN_IF_ERROR(FromErrorCode(error, "giving its name to", path));
  TACIT_RETURN_IF_ERROR(SyncFolder(fs::absolute(path).parent_path()));
  CrashPoint("restore.named");
  restored.checkpoint = manifest;
  return restored;
}

Result<std::vector<CheckpointedLearner>> ReadCheckpointed(const std::string& folder) {
  TACIT_ASSIGN(const auto rocks, Rocks::OpenReadOnly(folder));
  TACIT_ASSIGN(const Loaded loaded, Load(*rocks));
  std::vector<CheckpointedLearner> learners;
  for (size_t key = 0; key < loaded.records.size(); ++key) {
    CheckpointedLearner& learner = learners.emplace_back();
    learner.name = loaded.records[key].name;
    learner.position = loaded.positions[key];
    for (const privacy::LedgerTotal& total : loaded.tip.learners)
      if (total.learner == learner.name) learner.steps = total.steps;
  }
  return learners;
}

}  // namespace tacit::store
