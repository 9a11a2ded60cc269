#pragma once

#include <string>

#include "base/files/unique_fd.h"
#include "base/result.h"
#include "store/checkpoint/checkpoint.h"

namespace tacit::store {

// The right to change a folder of checkpoints: one maker or remover at a time, over all processes.
// The destructor gives it up.
class CheckpointParent {
 public:
  // Makes the folder if it is missing, and removes what interrupted makers and removers left.
  // kUnavailable: another process is at work there.
  static Result<CheckpointParent> Lock(const std::string& path);

  const std::string& path() const { return path_; }
  // Gives a checkpoint another manifest; a reader meets one or the other. On disk when it returns.
  Status Replace(const std::string& folder, const CheckpointManifest& manifest) const;
  // Removes a checkpoint: first it loses its name, so that nothing reads half of one.
  Status Remove(const std::string& folder) const;

 private:
  CheckpointParent(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  UniqueFd lock_;
};

// A checkpoint in the making, in a hidden folder of its parent. Unless it is finished, the
// destructor removes it; a crash leaves it to the next CheckpointParent::Lock.
class CheckpointDraft {
 public:
  // REQUIRES a parent that outlives the draft, and no other draft in it.
  static Result<CheckpointDraft> Begin(const CheckpointParent& parent);
  CheckpointDraft(CheckpointDraft&& other) noexcept
      : parent_(std::move(other.parent_)), folder_(std::move(other.folder_)) {
    other.folder_.clear();
  }
  CheckpointDraft& operator=(CheckpointDraft&&) = delete;
  ~CheckpointDraft();

  // The folder that gets the files; they must be synced.
  const std::string& folder() const { return folder_; }
  // Writes the manifest, then gives the folder its name. On disk when it returns.
  Result<CheckpointPlace> Finish(CheckpointManifest manifest);

 private:
  CheckpointDraft(std::string parent, std::string folder)
      : parent_(std::move(parent)), folder_(std::move(folder)) {}
  std::string parent_, folder_;
};

}  // namespace tacit::store
