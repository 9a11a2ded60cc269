#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/row_space.h"
#include "base/terms.h"
#include "privacy/ledger.h"
#include "store/types/history.h"

// Checkpoints: folders that hold a store as of one commit, made by Store::MakeCheckpoint. Nothing
// changes a checkpoint once it has its name, but that its manifest lists users who asked to be
// forgotten since. Any number of processes read one at once, with
// OpenReadOnly, which refuses a damaged one.
namespace tacit::store {

// A release has nothing raw but what a learner that adds no noise was taught.
enum class CheckpointKind : uint8_t {
  kFull,  // the whole store: raw histories, allowances, positions and secrets too; the operator's
  kRelease,  // rows and parameters as served, released states and the ledger
};
inline constexpr size_t kCheckpointKinds = 2;
std::string_view NameOf(CheckpointKind kind);
Result<CheckpointKind> CheckpointKindOf(std::string_view name);

struct CheckpointFile {
  std::string name;
  uint64_t bytes = 0;
  Digest sha256{};

  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

// A learner with its model and spending.
struct CheckpointLearner {
  std::string name;
  Digest model_fingerprint{};
  privacy::Unit unit = privacy::Unit::kEvent;
  double epsilon = 0, delta = 0;
  uint64_t steps = 0;
  struct Table {
    std::string name;
    uint64_t rows = 0;
    uint32_t dim = 0, state_floats = 0;
    friend bool operator==(const Table&, const Table&) = default;
  };
  std::vector<Table> tables;
};

// The contents of a checkpoint, as its manifest tells them.
struct CheckpointManifest {
  CheckpointKind kind = CheckpointKind::kFull;
  std::string lineage;
  CommitSeq commit;
  TermId term = kNoTerm;  // the commit's; a release has none
  Digest head{};          // the ledger's
  uint64_t ledger_entries = 0;
  uint32_t store_format = 0;
  uint32_t shards = 0;
  int64_t time_ms = 0;  // when it was made, UTC
  std::string code_version;
  std::string schema;             // the maker's description of its records; opaque here
  double epsilon = 0, delta = 0;  // of all learners together
  std::vector<CheckpointLearner> learners;
  // Users whose histories a full one may hold, and who asked to be forgotten since it was made,
  // ascending by hash. A restore forgets them again.
  std::vector<ForgottenUser> forgotten = {};
  std::vector<CheckpointFile> files;  // all but the manifest, by name

  uint64_t bytes() const;
  // The name that a checkpoint's folder has in its parent: kind, commit, and digits of the head.
  std::string FolderName() const;
};

// The manifest's name in a checkpoint.
inline constexpr char kCheckpointManifestName[] = "checkpoint.manifest";

// The bytes of a manifest file. checkpoint_manifest.cc has the grammar.
std::string EncodeManifest(const CheckpointManifest& manifest);
// kCorruption names the line. kRefused: another format.
Result<CheckpointManifest> DecodeManifest(std::string_view bytes);

// True of tables and blobs, which never change once they are written, and whose blocks RocksDB
// checks as it reads them.
bool IsTableName(std::string_view file);

// True if the folder has a manifest.
bool IsCheckpoint(const std::string& folder);
// Reads and checks the manifest alone. kNotFound: there is none. Errors name the file.
Result<CheckpointManifest> ReadManifest(const std::string& folder);

// The share of a checkpoint that is read to check it.
enum class CheckpointCheck {
  kAtOpen,  // names, sizes and all small files: what RocksDB does not check block by block
  kEveryByte,
};
// Checks a checkpoint's files against its manifest. kCorruption names the first file that differs.
Result<CheckpointManifest> CheckCheckpoint(const std::string& folder, CheckpointCheck check);

// A checkpoint as it lies in a folder of checkpoints.
struct CheckpointPlace {
  std::string folder;
  CheckpointManifest manifest;
};
// The checkpoints in `parent`, oldest first. Those with an unreadable manifest are left out and
// named in `unreadable`, if it is not null. A missing parent has none.
Result<std::vector<CheckpointPlace>> ListCheckpoints(const std::string& parent,
                                                     std::vector<std::string>* unreadable);
// The newest of checkpoints in ListCheckpoints' order: of `lineage` the one with the highest
// commit.
struct NewestCheckpoint {
  const CheckpointPlace* place = nullptr;  // null if there is none
  const CheckpointPlace* other = nullptr;  // one of another lineage, if there is one
};
// No kind: any. No lineage: the one that made the last checkpoint, because a store that was
// restored counts on from an older commit, and the lost store's may lie beside it with higher ones.
NewestCheckpoint NewestOf(std::span<const CheckpointPlace> places,
                          std::optional<CheckpointKind> kind, std::string lineage = "");
// Removes all but the newest `keep` checkpoints of each kind and lineage, all of the lineages in
// `left`, and what an interrupted creation or removal left. One that a process holds
// (checkpoint_hold.h) stays, and is named in `held`, if it is not null. Returns the folders of the
// removed ones.
Result<std::vector<std::string>> PruneCheckpoints(const std::string& parent, uint64_t keep,
                                                  std::vector<std::string>* held = nullptr,
                                                  const std::set<std::string>& left = {});

struct CheckpointRequest {
  CheckpointKind kind = CheckpointKind::kFull;
  std::string parent;       // the folder that gets the checkpoint's folder; made if it is missing
  std::string schema = {};  // for the manifest
  // Called repeatedly; if it returns false, the checkpoint is given up with kUnavailable and
  // nothing is left of it. May be empty.
  std::function<bool()> keep_going = {};
};
// kUnavailable once the request says so.
Status StillWanted(const CheckpointRequest& request);

struct CheckpointMade {
  CheckpointPlace place;
  bool existed = false;     // the last commit had a checkpoint of this kind already
  uint64_t files_read = 0;  // tables that were read: those without a digest, copies to other disks
  uint64_t files_shared = 0;  // tables linked from an older checkpoint, on another disk
  double paused_ms = 0;       // how long no commit could be written, all pauses together
  double took_ms = 0;
};

}  // namespace tacit::store
