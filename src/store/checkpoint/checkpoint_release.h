#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "privacy/ledger.h"
#include "store/checkpoint/checkpoint.h"
#include "store/disk/rocks.h"
#include "store/rows/learner_directory.h"
#include "store/view/snapshot_impl.h"

namespace tacit::store {

struct ReleaseParts {
  const LearnerDirectory& directory;
  uint32_t shards = 0;
  privacy::Ledger::Promises promises;
  const CheckpointRequest& request;
};

// Writes a new database into an empty folder and syncs it: rows, dense parameters and averages as
// the snapshot serves them, released states, the ledger's entries and the promises. Each value is
// put there by name, so that what is raw (histories, allowances, positions, salt, key, the
// ledger's state, which counts offsets) is not left out but never taken. Returns the files.
Result<std::vector<CheckpointFile>> WriteRelease(const Rocks& rocks, const SnapshotImpl& snapshot,
                                                 const ReleaseParts& parts,
                                                 const std::string& folder);

}  // namespace tacit::store
