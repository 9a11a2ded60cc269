#include "store/checkpoint/checkpoint_draft.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/crash_point.h"
#include "store/disk/file_digest.h"
#include "store/disk/folder.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMaking = ".making", kRemoving = ".removing-";
constexpr std::string_view kManifest = ".manifest";

Status RemoveAll(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return Fail(FolderError(error.value(), "removing", path));
  return {};
}

Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return Fail(FolderError(error.value(), "renaming to " + to, from));
  return {};
}

Status ClearLeftovers(const std::string& parent) {
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name == kMaking || name == kManifest || name.starts_with(kRemoving))
      TACIT_RETURN_IF_ERROR(RemoveAll(it->path()));
  }
  if (error) return Fail(FolderError(error.value(), "reading", parent));
  return {};
}

}  // namespace

Result<CheckpointParent> CheckpointParent::Lock(const std::string& path) {
  const std::error_code error = MakeFolders(path);
  if (error) return Fail(FolderError(error.value(), "creating the folder of checkpoints", path));
  TACIT_ASSIGN(
      UniqueFd lock,
      LockFileAlone(path + "/.lock", 0666,
                    fmt::format("another process makes or removes checkpoints in {}", path)));
  TACIT_RETURN_IF_ERROR(ClearLeftovers(path));
  return CheckpointParent(path, std::move(lock));
}

Status CheckpointParent::Replace(const std::string& folder,
                                 const CheckpointManifest& manifest) const {
  const std::string fresh = path_ + "/" + std::string(kManifest);
  TACIT_RETURN_IF_ERROR(RemoveAll(fresh));
  TACIT_RETURN_IF_ERROR(WriteNewFile(fresh, EncodeManifest(manifest)));
  CrashPoint("checkpoint.manifest_written");
  TACIT_RETURN_IF_ERROR(Rename(fresh, folder + "/" + kCheckpointManifestName));
  return SyncFolder(folder);
}

Status CheckpointParent::Remove(const std::string& folder) const {
  const std::string doomed =
      path_ + "/" + std::string(kRemoving) + fs::path(folder).filename().string();
  TACIT_RETURN_IF_ERROR(Rename(folder, doomed));
  CrashPoint("checkpoint.removing");
  return RemoveAll(doomed);
}

Result<CheckpointDraft> CheckpointDraft::Begin(const CheckpointParent& parent) {
  std::string folder = parent.path() + "/" + std::string(kMaking);
  const std::error_code error = MakeOwnFolder(folder);
  if (error) return Fail(FolderError(error.value(), "creating", folder));
  return CheckpointDraft(parent.path(), std::move(folder));
}

CheckpointDraft::~CheckpointDraft() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

Result<CheckpointPlace> CheckpointDraft::Finish(CheckpointManifest manifest) {
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const CheckpointFile& a, const CheckpointFile& b) { return a.name < b.name; });
  TACIT_RETURN_IF_ERROR(
      WriteNewFile(folder_ + "/" + kCheckpointManifestName, EncodeManifest(manifest)));
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder_, error), end; !error && it != end;
       it.increment(error))
    if (it->is_directory(error)) TACIT_RETURN_IF_ERROR(SyncFolder(it->path()));
  if (error) return Fail(FolderError(error.value(), "reading", folder_));
  TACIT_RETURN_IF_ERROR(SyncFolder(folder_));
  CrashPoint("checkpoint.written");
  const std::string place = parent_ + "/" + manifest.FolderName();
  TACIT_RETURN_IF_ERROR(Rename(folder_, place));
  folder_.clear();
  CrashPoint("checkpoint.named");
  TACIT_RETURN_IF_ERROR(SyncFolder(parent_));
  return CheckpointPlace{place, std::move(manifest)};
}

}  // namespace tacit::store
