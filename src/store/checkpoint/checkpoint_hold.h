#pragma once

#include <optional>
#include <string>

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace tacit::store {

// A checkpoint that is in use: PruneCheckpoints leaves it where it is. It ends with the object, and
// with the process. Other processes see it on the same machine.
class CheckpointHold {
 public:
  // kUnavailable: it is being removed. REQUIRES a checkpoint's folder.
  static Result<CheckpointHold> Take(const std::string& folder);

 private:
  explicit CheckpointHold(UniqueFd folder) : folder_(std::move(folder)) {}
  UniqueFd folder_;  // locked, shared
};

// The right to remove a checkpoint: nobody can begin to use it meanwhile. Nothing where somebody
// uses it. A folder system without locks has nobody who uses it.
std::optional<UniqueFd> ClaimForRemoval(const std::string& folder);

}  // namespace tacit::store
