#pragma once

#include <rocksdb/metadata.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/checkpoint/checkpoint.h"
#include "store/disk/rocks.h"
#include "store/rows/learner_directory.h"
#include "store/view/snapshot_impl.h"

namespace tacit::store {

// The manifest of a checkpoint of this view, without files.
CheckpointManifest DescribeView(CheckpointKind kind, const View& view,
                                const LearnerDirectory& directory, uint32_t shards);

// Keeps RocksDB from deleting files, until it is destroyed.
class KeepFiles {
 public:
  explicit KeepFiles(const Rocks& rocks);
  ~KeepFiles();
  KeepFiles(const KeepFiles&) = delete;
  KeepFiles& operator=(const KeepFiles&) = delete;

 private:
  const Rocks& rocks_;
};

// Writes out what is in memory, and returns once it is in files. Commits go on meanwhile; to
// `paused_ms` it adds the time in which none could be written.
Status WriteOutMemory(const Rocks& rocks, const CheckpointRequest& request, double* paused_ms);

// The files that make up the database at this moment. REQUIRES that no commit is being written, and
// KeepFiles until they are linked.
using LiveFiles = std::vector<rocksdb::LiveFileStorageInfo>;
Result<LiveFiles> ListLiveFiles(const Rocks& rocks);

// The SHA-256 that RocksDB computed when it wrote the file; nothing for other files.
std::optional<Digest> RecordedDigest(const rocksdb::LiveFileStorageInfo& file);

// Puts the files into a folder on disk: links tables and blobs, whose checksums were computed when
// they were written, and copies the rest. On another disk than the store's, tables that an older
// checkpoint beside the new one has are linked from there. Counts in `made` the tables that it had
// to read: those without a digest, or those that are new on another disk.
Result<std::vector<CheckpointFile>> LinkFiles(const Rocks& rocks, const LiveFiles& files,
                                              const CheckpointRequest& request,
                                              const std::string& folder, CheckpointMade* made);

}  // namespace tacit::store
