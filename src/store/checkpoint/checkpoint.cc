#include "store/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "base/files/is_there.h"
#include "store/checkpoint/checkpoint_draft.h"
#include "store/checkpoint/checkpoint_hold.h"
#include "store/disk/file_digest.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

Status DamagedFile(const std::string& path, std::string_view how) {
  return Fail(ErrorCode::kCorruption,
              fmt::format("{} {}: the checkpoint is damaged, use another", path, how));
}

Status CheckFile(const std::string& folder, const CheckpointFile& file, CheckpointCheck check) {
  const std::string path = folder + "/" + file.name;
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(path, error))) return DamagedFile(path, "is missing");
  const uint64_t bytes = fs::file_size(path, error);
  if (error || bytes != file.bytes)
    return DamagedFile(path, fmt::format("has {} bytes, not {}", bytes, file.bytes));
  if (check == CheckpointCheck::kAtOpen && IsTableName(file.name)) return {};
  TACIT_ASSIGN(const Digest digest, DigestOfFile(path, bytes));
  if (digest == file.sha256) return {};
  return DamagedFile(path, "does not match its SHA-256 in the manifest");
}

// RocksDB would read a log or a manifest that was added to the folder.
Status CheckNothingAdded(const std::string& folder, const CheckpointManifest& manifest) {
  std::set<std::string> known{kCheckpointManifestName};
  for (const CheckpointFile& file : manifest.files) {
    known.insert(file.name);
    for (fs::path on = fs::path(file.name).parent_path(); !on.empty(); on = on.parent_path())
      known.insert(on);
  }
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!known.contains(it->path().lexically_relative(folder)) || it->is_symlink(error))
      return DamagedFile(it->path(), "is not in the manifest");
  }
  if (error) return Fail(ErrorCode::kIo, fmt::format("reading {}: {}", folder, error.message()));
  return {};
}

// A folder that this user may not enter tells by its name alone.
bool MayBeCheckpoint(const std::string& folder) {
  if (const auto there = IsThere(folder + "/" + kCheckpointManifestName)) return *there;
  const std::string name = fs::path(folder).filename();
  return name.starts_with("full-") || name.starts_with("release-");
}

}  // namespace

bool IsTableName(std::string_view file) {
  return file.ends_with(".sst") || file.ends_with(".blob");
}

Result<CheckpointManifest> CheckCheckpoint(const std::string& folder, CheckpointCheck check) {
  TACIT_ASSIGN(CheckpointManifest manifest, ReadManifest(folder));
  for (const CheckpointFile& file : manifest.files)
    TACIT_RETURN_IF_ERROR(CheckFile(folder, file, check));
  TACIT_RETURN_IF_ERROR(CheckNothingAdded(folder, manifest));
  return manifest;
}

Status StillWanted(const CheckpointRequest& request) {
  if (!request.keep_going || request.keep_going()) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("making a checkpoint in {} was given up", request.parent));
}

Result<std::vector<CheckpointPlace>> ListCheckpoints(const std::string& parent,
                                                     std::vector<std::string>* unreadable) {
  std::vector<CheckpointPlace> places;
  std::error_code error;
  TACIT_ASSIGN(const bool there, IsThere(parent));
  if (!there) return places;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    const std::string folder = it->path();
    if (it->path().filename().string().starts_with('.') || !MayBeCheckpoint(folder)) continue;
    auto manifest = ReadManifest(folder);
    if (manifest)
      places.push_back({folder, *std::move(manifest)});
    else if (unreadable != nullptr)
      unreadable->push_back(manifest.error().message);
  }
  if (error) return Fail(ErrorCode::kIo, fmt::format("reading {}: {}", parent, error.message()));
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return std::tie(a.manifest.time_ms, a.manifest.commit, a.folder) <
           std::tie(b.manifest.time_ms, b.manifest.commit, b.folder);
  });
  return places;
}

NewestCheckpoint NewestOf(std::span<const CheckpointPlace> places,
                          std::optional<CheckpointKind> kind, std::string lineage) {
  NewestCheckpoint newest;
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    const CheckpointManifest& is = place->manifest;
    if (kind && is.kind != *kind) continue;
    if (lineage.empty()) lineage = is.lineage;
    if (is.lineage != lineage)
      newest.other = &*place;
    else if (newest.place == nullptr || is.commit > newest.place->manifest.commit)
      newest.place = &*place;
  }
  return newest;
}

Result<std::vector<std::string>> PruneCheckpoints(const std::string& parent, uint64_t keep,
                                                  std::vector<std::string>* held,
                                                  const std::set<std::string>& left) {
  std::vector<std::string> removed;
  TACIT_ASSIGN(const bool there, IsThere(parent));
  if (!there) return removed;
  TACIT_ASSIGN(const CheckpointParent locked, CheckpointParent::Lock(parent));
  TACIT_ASSIGN(std::vector<CheckpointPlace> places, ListCheckpoints(parent, nullptr));
  // The clock may have been ahead when one was made: in a lineage commits tell which is newer.
  std::ranges::stable_sort(places, {}, [](const auto& place) { return place.manifest.commit; });
  std::map<std::pair<CheckpointKind, std::string>, uint64_t> newer;
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    const std::string& lineage = place->manifest.lineage;
    if (!left.contains(lineage) && newer[{place->manifest.kind, lineage}]++ < keep) continue;
    const auto claim = ClaimForRemoval(place->folder);
    if (!claim && held != nullptr) held->push_back(place->folder);
    if (!claim) continue;
    TACIT_RETURN_IF_ERROR(locked.Remove(place->folder));
    removed.push_back(place->folder);
  }
  std::reverse(removed.begin(), removed.end());
  return removed;
}

}  // namespace tacit::store
