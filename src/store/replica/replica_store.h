#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/siphash.h"
#include "store/store.h"
#include "store/types/learner_record.h"
#include "store/types/snapshot.h"
#include "store/view/delta_codec.h"

// The store of a replica: the same families and formats as a trainer's, without anything that
// learning resumes from. Rows have what serving reads, the embedding and with a moving average the
// average and its step; dense parameters are as served. It is never trained on: a trainer refuses
// it, and a replica a trainer's.
namespace tacit::store {

struct ReplicaOptions {
  std::string path;
  uint64_t memory_bytes = uint64_t{256} << 20;  // REQUIRES at least 32 MiB
  uint32_t shards = kNewShards;                 // of a new store
  uint32_t fold_after_versions = 8;
  uint64_t overlay_bytes = uint64_t{256} << 20;
  uint64_t fold_file_bytes = uint64_t{256} << 10;
  uint64_t open_files_most = 0;
  std::vector<LearnerLayout> learners;  // of the configuration, as a trainer's
  const Clock* clock = nullptr;         // if null, the system's
};

// The origin of all that a replica holds.
struct ReplicaOrigin {
  std::string lineage;                  // of the trainer's store
  std::string feed;                     // for the caller of Apply; opaque here
  std::vector<LearnerRecord> learners;  // all of the trainer's, by key
};

struct ReplicaLearner {
  uint16_t key = 0;
  uint32_t step = 0;  // the last step of its moving average; 0: it keeps none
  // If null, unchanged.
  std::shared_ptr<const RowDelta> rows = nullptr;
  std::shared_ptr<const std::vector<float>> dense = nullptr;  // as served
  std::shared_ptr<const std::string> released = nullptr;
};

// A version: how it differs from the one before.
struct ReplicaVersion {
  CommitTip tip;
  std::vector<ReplicaLearner> learners;
  std::map<uint64_t, std::string> entries;  // of the ledger, encoded: new, changed, or the same
  std::string position;                     // for the caller of Apply; opaque here
  std::optional<Hash128> mark = {};         // of the feed's version, for workers
};

// Apply and Begin belong to one thread; the rest is thread-safe.
class ReplicaStore {
 public:
  // Opens or creates. kRefused: a trainer's store, a checkpoint, or other models than the
  // configuration's. kUnavailable: locked by another process. kCorruption: damaged bytes. A store
  // whose first version was not applied to its end is emptied.
  static Result<std::unique_ptr<ReplicaStore>> Open(ReplicaOptions options);
  virtual ~ReplicaStore() = default;

  // The last version; null if there is none yet.
  virtual std::shared_ptr<const Snapshot> Latest() const = 0;
  // If empty, it has not begun.
  virtual std::string feed() const = 0;
  // The last version's; empty if there is none.
  virtual std::string position() const = 0;
  virtual const std::vector<LearnerRecord>& learners() const = 0;  // once it has begun

  // Begins an empty store. kRefused: the configuration's learners are not among these, or are
  // others.
  virtual Status Begin(const ReplicaOrigin& origin) = 0;
  // Takes rows that belong to the first version, or that it replaces, before it is applied: nobody
  // sees them before that, and a start that comes before it forgets them. kCorruption: a row does
  // not fit. kIo: the disk, and nothing more can be applied. REQUIRES that it has begun, and has no
  // version.
  virtual Status Fill(const std::vector<ReplicaLearner>& learners) = 0;
  // Applies a version with its position in one synced batch, and shows it. kCorruption: it does not
  // follow from the last one (ledger, layouts), and nothing has changed. kRefused: it is too large
  // for one batch. kIo: the disk; nothing more can be applied, and what is shown stays.
  // REQUIRES that it has begun, and a later version than the last.
  virtual Status Apply(ReplicaVersion version) = 0;
  // Prepares for the end: the next start has little to replay.
  virtual Status Settle() = 0;

  virtual uint64_t unfolded() const = 0;
};

// The layout of rows as a replica has them.
RowLayout ReplicaLayout(RowLayout layout);

}  // namespace tacit::store
