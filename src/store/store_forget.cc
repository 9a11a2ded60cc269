// The parts of StoreImpl that forget users.
#include <fmt/format.h>

#include <algorithm>

#include "base/crash_point.h"
#include "base/files/is_there.h"
#include "base/threads/mutex.h"
#include "store/checkpoint/checkpoint_draft.h"
#include "store/disk/unfinished_restore.h"
#include "store/store_impl.h"

namespace tacit::store {
namespace {

// Has the manifest list these users, each with the latest request. Returns whether it changed.
bool ListForgotten(std::span<const ForgottenUser> users, CheckpointManifest* manifest) {
  bool changed = false;
  for (const ForgottenUser& user : users) {
    const auto known = std::ranges::find(manifest->forgotten, user.user, &ForgottenUser::user);
    if (known == manifest->forgotten.end()) {
      manifest->forgotten.push_back({.user = user.user, .before_ms = user.before_ms});
      changed = true;
    } else if (known->before_ms < user.before_ms) {
      known->before_ms = user.before_ms;
      changed = true;
    }
  }
  std::ranges::sort(manifest->forgotten, {}, &ForgottenUser::user);
  return changed;
}

// A checkpoint that was made after a request holds nothing from before it; listing the user there
// too does no harm. Returns what is wrong with those that cannot be read: nobody knows whom they
// hold.
Result<std::vector<std::string>> NoteInCheckpoints(const std::string& path, const View& view,
                                                   std::span<const ForgottenUser> users) {
  std::vector<std::string> unreadable;
  TACIT_ASSIGN(const auto places, ListCheckpoints(path, &unreadable));
  if (places.empty()) return unreadable;
  TACIT_ASSIGN(const CheckpointParent parent, CheckpointParent::Lock(path));
  for (const CheckpointPlace& place : places) {
    CheckpointManifest manifest = place.manifest;
    const bool ours = manifest.lineage == view.lineage ||
                      std::ranges::find(view.ancestors, manifest.lineage, &Ancestor::lineage) !=
                          view.ancestors.end();
    if (manifest.kind != CheckpointKind::kFull || !ours || !ListForgotten(users, &manifest))
      continue;
    TACIT_RETURN_IF_ERROR(parent.Replace(place.folder, manifest));
  }
  return unreadable;
}

// A restore works on a copy of the store, histories and all.
Status CheckNoOtherCopy(const std::string& path) {
  TACIT_RETURN_IF_ERROR(RemoveUnfinishedRestore(path));
  TACIT_ASSIGN(const bool left, IsThere(WorkFolder(path)));
  if (!left) return {};
  return Fail(
      ErrorCode::kUnavailable,
      fmt::format("{} may hold users who asked to be forgotten: remove it", WorkFolder(path)));
}

}  // namespace

Status StoreImpl::ForgetUsers(std::span<const Hash128> users) {
  TACIT_RETURN_IF_ERROR(parts_.latch->status());
  Status status;
  RunBetweenCommits([&] { status = ForgetNow(users); });
  return status;
}

Status StoreImpl::ForgetNow(std::span<const Hash128> users) {
  const Rocks& rocks = *parts_.rocks;
  const int64_t now = rocks.clock().UnixMillis();
  rocksdb::WriteBatch batch;
  std::vector<ForgottenUser> forgotten;
  for (const Hash128& user : users) {
    // A clock that was set back takes nothing of an earlier request back, and a copy that knows of
    // that one alone learns that there was another.
    const auto before = forgotten_.Find(user);
    forgotten.push_back(
        {.user = user, .before_ms = before ? std::max(now, before->before_ms + 1) : now});
    PutForgotten(rocks, parts_.directory->records().size(), forgotten.back(), &batch);
  }
  TACIT_RETURN_IF_ERROR(rocks.WriteSynced(batch));
  CrashPoint("forget.written");
  const uint64_t deletion = rocks.db().GetLatestSequenceNumber();
  for (const ForgottenUser& user : forgotten) forgotten_.Add(user, deletion);
  // The same commit, without the histories that are gone.
  std::shared_ptr<const SnapshotImpl> old;  // released outside the lock
  const MutexLock lock(view_mutex_);
  old = std::exchange(published_, std::make_shared<SnapshotImpl>(parts_.rocks, parts_.directory,
                                                                 published_->view()));
  return {};
}

Result<uint64_t> StoreImpl::EraseForgotten(const std::string& checkpoints,
                                           const std::atomic<bool>* given_up) {
  const MutexLock one(erase_mutex_);
  const Rocks& rocks = *parts_.rocks;
  const ForgottenUsers::ToErase erase = forgotten_.Unerased();
  if (erase.users.empty()) return uint64_t{0};
  // First, because a store that fails is restored from them. One that was begun before the deletion
  // is waited for.
  std::vector<std::string> unreadable;
  if (!checkpoints.empty()) {
    const MutexLock none_is_made(checkpoint_mutex_);
    TACIT_ASSIGN(unreadable, NoteInCheckpoints(checkpoints, Published()->view(), erase.users));
  }
  CrashPoint("forget.noted");
  // A checkpoint that cannot be read has this tried again and again.
  if (!files_clean_to_ || *files_clean_to_ < erase.deletion)
    TACIT_RETURN_IF_ERROR(
        EraseFromFiles(rocks, parts_.directory->records().size(), erase, given_up));
  files_clean_to_ = erase.deletion;
  CrashPoint("forget.erased");
  if (!unreadable.empty())
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}; the users in it cannot be noted: mend the checkpoint, or "
                            "remove it",
                            unreadable.front()));
  TACIT_RETURN_IF_ERROR(CheckNoOtherCopy(rocks.path()));
  // On the commit thread, so that a user who asks again meanwhile is not marked as erased.
  Status status;
  RunBetweenCommits([&] {
    rocksdb::WriteBatch batch;
    for (const ForgottenUser& user : erase.users)
      if (forgotten_.Find(user.user) == user) PutErased(rocks, user, &batch);
    status = rocks.WriteSynced(batch);
    if (status) forgotten_.Erased(erase.users);
  });
  TACIT_RETURN_IF_ERROR(std::move(status));
  return erase.users.size();
}

}  // namespace tacit::store
