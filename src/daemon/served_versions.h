#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "metrics/registry.h"
#include "serve/items/recommender.h"
#include "serve/routes/versions_route.h"
#include "serve/versions/versions.h"
#include "store/checkpoint/checkpoint_hold.h"
#include "store/store.h"

namespace tacit::daemon {

// The versions that `--serve-only` answers from: the one that is served, a canary beside it, and
// those that requests may still name. At most `open_most` lie open, and one more while they change;
// requests go on meanwhile, and keep the version that they began with. An operator's choice stays,
// in a file if there is one, until the operator says otherwise. Thread-safe.
class ServedVersions {
 public:
  struct Options {
    uint32_t open_most = 2;
    std::string choice_file = {};  // if empty, a choice ends with the process
    std::vector<store::LearnerLayout> layouts;
    uint64_t reader_bytes = store::kReaderBytes;  // of each version that lies open
    std::vector<serve::RecommendModel> recommenders = {};
    metrics::Registry* registry = nullptr;  // never null; outlives the versions
  };

  // `directory` is a checkpoint, a store, or a folder of checkpoints, whose newest one is served.
  // kInvalidArgument, kNotFound: what the choice file asks for cannot be served.
  static Result<std::unique_ptr<ServedVersions>> Open(const std::string& directory,
                                                      Options options);

  const std::shared_ptr<serve::VersionTable>& table() const { return table_; }
  // The folder that is served now.
  std::string folder() const;

  // Moves to what is newest now: of a checkpoint, the newest of its kind and lineage beside it; of
  // a store, its last commit. Returns false if that is served already, or the operator has chosen
  // what is. After a failure everything is as before.
  Result<bool> MoveOn();

  // The operator's order; as VersionCommands has it.
  Result<serve::VersionReport> Set(const serve::VersionOrder& order);
  Result<serve::VersionReport> Report() const;

 private:
  struct Opened {
    std::string folder;
    std::shared_ptr<const store::CheckpointHold> hold;  // null if it is of a store
    std::shared_ptr<const serve::ServedVersion> version;
  };
  // The state between two changes.
  struct State {
    std::map<uint64_t, Opened> open;  // by version
    uint64_t serving = 0;
    bool held = false;
    std::optional<serve::Canary> canary = {};
  };
  using Folders = std::map<uint64_t, std::string>;  // by version

  ServedVersions(std::string directory, Options options)
      : directory_(std::move(directory)), options_(std::move(options)) {}
  // A checkpoint in a folder, which is not removed as long as this holds it.
  struct Held {
    store::ReadOnlyStore store;
    std::shared_ptr<const store::CheckpointHold> hold;
  };
  Result<Held> Read(const std::string& folder) const;
  Result<Opened> OpenVersion(const std::string& folder, Held read) const;
  // Checkpoints of the served kind and lineage, and what is open.
  Result<Folders> Places(const State& state) const;
  Result<bool> MoveToNewest(State* state) const;
  Status Follow(const serve::VersionOrder& order, State* state) const;
  // Opens what `state` serves, and drops what is too many.
  Status OpenWanted(State* state) const;
  // Opens older checkpoints while there is room; what cannot be opened is warned of.
  void OpenOlder(State* state) const;
  Status Keep(const State& state) const;
  void Publish(State state) TACIT_REQUIRES(moving_);
  serve::VersionReport ReportOf(const State& state, const Folders& places) const;

  const std::string directory_;
  const Options options_;
  std::optional<store::CheckpointManifest> like_;  // of the first one; nothing if a store is served
  std::shared_ptr<serve::VersionTable> table_;
  mutable Mutex moving_;  // held while versions are opened and closed
  State state_ TACIT_GUARDED_BY(moving_);
};

}  // namespace tacit::daemon
