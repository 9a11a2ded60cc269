#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace tacit::daemon {

// The store or checkpoint that `--serve-only` answers from. It moves to a newer one while requests
// go on: each request keeps the snapshot that it began with. Thread-safe.
class ServedCopy {
 public:
  // `directory` is a checkpoint, a store, or a folder of checkpoints, whose newest one is served.
  static Result<std::unique_ptr<ServedCopy>> Open(const std::string& directory,
                                                  std::vector<store::LearnerLayout> layouts);

  std::shared_ptr<const store::Snapshot> Latest() const;
  // The folder that is served now.
  std::string folder() const;

  // Moves to what is newest now: of a checkpoint, the newest of its kind and lineage beside it; of
  // a store, its last commit. Returns false if that is served already. After a failure everything
  // is as before.
  Result<bool> MoveOn();

 private:
  ServedCopy(std::string directory, std::vector<store::LearnerLayout> layouts)
      : directory_(std::move(directory)), layouts_(std::move(layouts)) {}
  Result<store::ReadOnlyStore> Read(const std::string& folder) const;

  const std::string directory_;
  const std::vector<store::LearnerLayout> layouts_;
  mutable std::mutex mutex_;
  std::string folder_;
  std::shared_ptr<const store::Snapshot> snapshot_;
};

}  // namespace tacit::daemon
