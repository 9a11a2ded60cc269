// The parts of StoreImpl that make checkpoints and look for damage.
#include <fmt/format.h>

#include <chrono>
#include <future>

#include "base/crash_point.h"
#include "base/threads/mutex.h"
#include "store/checkpoint/checkpoint_full.h"
#include "store/checkpoint/checkpoint_release.h"
#include "store/disk/table_files.h"
#include "store/store_impl.h"
#include "store/view/load.h"

namespace tacit::store {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

// The checkpoint that already has this one's name; nothing if there is none.
Result<std::optional<CheckpointPlace>> FindSame(const std::string& parent,
                                                const CheckpointManifest& manifest) {
  const std::string folder = parent + "/" + manifest.FolderName();
  if (!IsCheckpoint(folder)) return std::optional<CheckpointPlace>{};
  TACIT_ASSIGN(CheckpointManifest found, ReadManifest(folder));
  if (found.lineage != manifest.lineage || found.head != manifest.head)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} is a checkpoint of another store; name another folder", folder));
  return std::optional<CheckpointPlace>({folder, std::move(found)});
}

}  // namespace

// Has the commit thread do this before its next commit, and waits for it.
void StoreImpl::RunBetweenCommits(std::function<void()> work) {
  std::future<void> done;
  {
    const MutexLock lock(mutex_);
    done = between_.emplace_back(std::move(work)).get_future();
  }
  changed_.NotifyAll();
  done.wait();
}

Result<CheckpointMade> StoreImpl::MakeCheckpoint(const CheckpointRequest& request) {
  const MutexLock one(checkpoint_mutex_);
  const auto start = std::chrono::steady_clock::now();
  TACIT_RETURN_IF_ERROR(parts_.latch->status());
  const auto snapshot = Published();
  if (snapshot->version() == CommitSeq(0))
    return Fail(ErrorCode::kUnavailable,
                fmt::format("store {}: nothing is committed yet", parts_.options.path));
  CheckpointMade made;
  TACIT_ASSIGN(const CheckpointParent parent, CheckpointParent::Lock(request.parent));
  const CheckpointManifest now =
      DescribeView(request.kind, snapshot->view(), *parts_.directory, parts_.directory->shards());
  TACIT_ASSIGN(auto same, FindSame(parent.path(), now));
  made.existed = same.has_value();
  if (same) {
    made.place = *std::move(same);
  } else {
    TACIT_ASSIGN(made.place, request.kind == CheckpointKind::kFull
                                 ? MakeFull(request, parent, &made)
                                 : MakeRelease(request, parent, *snapshot));
  }
  made.took_ms = Milliseconds(std::chrono::steady_clock::now() - start).count();
  return made;
}

// The slow parts come before and after the moment between two commits: what is in memory goes to
// files before it, and links are made after it, of files that are kept until then.
Result<CheckpointPlace> StoreImpl::MakeFull(const CheckpointRequest& request,
                                            const CheckpointParent& parent, CheckpointMade* made) {
  const Rocks& rocks = *parts_.rocks;
  TACIT_ASSIGN(CheckpointDraft draft, CheckpointDraft::Begin(parent));
  CrashPoint("checkpoint.begun");
  TACIT_RETURN_IF_ERROR(WriteOutMemory(rocks, request, &made->paused_ms));
  const KeepFiles keep(rocks);
  Result<LiveFiles> files;
  std::shared_ptr<const SnapshotImpl> snapshot;
  RunBetweenCommits([&] {
    const auto begin = std::chrono::steady_clock::now();
    snapshot = Published();
    files = ListLiveFiles(rocks);
    made->paused_ms += Milliseconds(std::chrono::steady_clock::now() - begin).count();
  });
  if (!files) return Fail(std::move(files.error()));
  CrashPoint("checkpoint.listed");
  CheckpointManifest manifest =
      DescribeView(request.kind, snapshot->view(), *parts_.directory, parts_.directory->shards());
  TACIT_ASSIGN(auto same, FindSame(parent.path(), manifest));
  if (same) {
    made->existed = true;
    return *std::move(same);
  }
  TACIT_ASSIGN(manifest.files, LinkFiles(rocks, *files, request, draft.folder(), made));
  CrashPoint("checkpoint.linked");
  return Finish(request, std::move(manifest), &draft);
}

// A published snapshot is a commit's whole public part, so nothing waits.
Result<CheckpointPlace> StoreImpl::MakeRelease(const CheckpointRequest& request,
                                               const CheckpointParent& parent,
                                               const SnapshotImpl& snapshot) {
  TACIT_ASSIGN(CheckpointDraft draft, CheckpointDraft::Begin(parent));
  CrashPoint("checkpoint.begun");
  privacy::Ledger::Promises promises;
  {
    const MutexLock lock(ledger_mutex_);
    TACIT_ASSIGN(promises, privacy::Ledger::ReadPromises(ledger_.EncodeState()));
  }
  CheckpointManifest manifest =
      DescribeView(request.kind, snapshot.view(), *parts_.directory, parts_.directory->shards());
  TACIT_ASSIGN(manifest.files, WriteRelease(*parts_.rocks, snapshot,
                                            ReleaseParts{.directory = *parts_.directory,
                                                         .shards = parts_.directory->shards(),
                                                         .promises = std::move(promises),
                                                         .request = request},
                                            draft.folder()));
  CrashPoint("checkpoint.linked");
  return Finish(request, std::move(manifest), &draft);
}

Result<std::vector<Damage>> StoreImpl::FindDamage(const Pace& pace) const {
  const std::vector<TableFile> files = ListTables(*parts_.rocks);
  uint64_t all = 0;
  for (const TableFile& file : files) all += file.bytes;
  std::vector<Damage> found;
  bool goes_on = true;
  for (const TableFile& file : files) {
    TACIT_ASSIGN(auto damage, CheckTable(file, [&](uint64_t read) {
                   goes_on = !pace || pace(read, all);
                   return goes_on;
                 }));
    if (damage) found.push_back(*std::move(damage));
    if (!goes_on) break;
  }
  return found;
}

Result<CheckpointPlace> StoreImpl::Finish(const CheckpointRequest& request,
                                          CheckpointManifest manifest,
                                          CheckpointDraft* draft) const {
  manifest.store_format = kStoreFormat;
  manifest.time_ms = parts_.rocks->clock().UnixMillis();
  manifest.code_version = parts_.options.code_version;
  manifest.schema = request.schema;
  return draft->Finish(std::move(manifest));
}

}  // namespace tacit::store
