#include "daemon/served_copy.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/log.h"
#include "store/checkpoint.h"
#include "wiring/witness_place.h"

namespace tacit::daemon {
namespace {

namespace fs = std::filesystem;

// The newest checkpoint in `parent`, of this one's kind and lineage if there is one.
Result<std::string> NewestIn(const std::string& parent, const store::CheckpointManifest* like) {
  TACIT_ASSIGN(const auto places, store::ListCheckpoints(parent, nullptr));
  const store::CheckpointPlace* newest = nullptr;
  for (const store::CheckpointPlace& place : places) {
    const store::CheckpointManifest& is = place.manifest;
    if (like != nullptr && (is.kind != like->kind || is.lineage != like->lineage)) continue;
    if (newest == nullptr || is.commit >= newest->manifest.commit) newest = &place;
  }
  if (newest == nullptr)
    return Fail(ErrorCode::kNotFound, fmt::format("there is no checkpoint in {}", parent));
  return newest->folder;
}

// The folder to serve for this name.
Result<std::string> Choose(const std::string& directory, bool newest) {
  std::error_code error;
  if (!store::IsCheckpoint(directory)) {
    if (fs::exists(directory + "/CURRENT", error)) return directory;
    TACIT_ASSIGN(const auto places, store::ListCheckpoints(directory, nullptr));
    return places.empty() ? directory : NewestIn(directory, nullptr);
  }
  if (!newest) return directory;
  // A link may have been turned to another checkpoint, which then is the one that is meant.
  const std::string folder = fs::weakly_canonical(directory, error).string();
  TACIT_ASSIGN(const store::CheckpointManifest manifest, store::ReadManifest(folder));
  return NewestIn(fs::path(folder).parent_path(), &manifest);
}

}  // namespace

Result<store::ReadOnlyStore> ServedCopy::Read(const std::string& folder) const {
  const std::string witness = wiring::WitnessBeside(folder);
  if (witness.empty() && !store::IsCheckpoint(folder))
    spdlog::warn("no witness of {}: an older copy put in its place would not be noticed", folder);
  return store::OpenReadOnly(folder, witness, layouts_);
}

Result<std::unique_ptr<ServedCopy>> ServedCopy::Open(const std::string& directory,
                                                     std::vector<store::LearnerLayout> layouts) {
  std::unique_ptr<ServedCopy> copy(new ServedCopy(directory, std::move(layouts)));
  TACIT_ASSIGN(copy->folder_, Choose(directory, /*newest=*/false));
  TACIT_ASSIGN(store::ReadOnlyStore store, copy->Read(copy->folder_));
  copy->snapshot_ = std::move(store.snapshot);
  return copy;
}

std::shared_ptr<const store::Snapshot> ServedCopy::Latest() const {
  std::lock_guard lock(mutex_);
  return snapshot_;
}

std::string ServedCopy::folder() const {
  std::lock_guard lock(mutex_);
  return folder_;
}

Result<bool> ServedCopy::MoveOn() {
  TACIT_ASSIGN(const std::string folder, Choose(directory_, /*newest=*/true));
  if (folder == this->folder() && store::IsCheckpoint(folder)) return false;
  TACIT_ASSIGN(store::ReadOnlyStore store, Read(folder));
  const auto now = Latest();
  if (store.snapshot->lineage() != now->lineage())
    return Fail(ErrorCode::kRefused,
                fmt::format("{} is of lineage {}, what is served of {}: start anew to serve it",
                            folder, store.snapshot->lineage(), now->lineage()));
  if (store.snapshot->version() <= now->version()) return false;
  std::lock_guard lock(mutex_);
  folder_ = folder;
  snapshot_ = std::move(store.snapshot);
  return true;
}

}  // namespace tacit::daemon
