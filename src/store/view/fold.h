#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/disk/rocks.h"
#include "store/rows/learner_directory.h"
#include "store/view/snapshot_impl.h"

namespace tacit::store {

// Called repeatedly while a fold writes. If it returns false, the fold gives up with kUnavailable
// and nothing has changed. May be empty.
using KeepFolding = std::function<bool(uint64_t rows_written, uint64_t rows)>;

// A row of an unfolded commit.
struct FoldRow {
  RowPlace place;
  size_t age;  // index in the overlay: higher is newer
  std::span<const float> floats;
  uint32_t dim = 0;   // of the embedding
  bool bf16 = false;  // RowLayout::bf16
};
// The newest version of every row in the view's overlay, ascending by place; valid as long as the
// view. Nothing if `keep` gave up.
std::optional<std::vector<FoldRow>> MergeOverlay(const LearnerDirectory& directory,
                                                 const View& view, const KeepFolding& keep = {});

enum class FoldedDeltas : uint8_t {
  kDeleted,
  kKept,  // for an outbox to delete (outbox.h)
};

// Merges the unfolded commits of a view into the families of rows, and deletes their deltas, unless
// they are kept, in one synced batch. Rows of less than `file_bytes_least` a family go through that
// batch, whose memory RocksDB writes out later; a file for each would take a sync of its own.
// Otherwise each family takes in a sorted file before the batch: after a crash in between, the next
// open repeats the fold with the same outcome. REQUIRES that every commit of the view is on disk
// and witnessed: a folded commit cannot be undone. Returns the number of rows written.
Result<uint64_t> FoldView(const Rocks& rocks, const LearnerDirectory& directory, const View& view,
                          uint64_t file_bytes_least, FoldedDeltas deltas,
                          const KeepFolding& keep = {});

// Has the families take in the rows of a view's overlay as sorted files. Nothing else changes, so
// this is for rows that nobody can see.
Status IngestOverlay(const Rocks& rocks, const LearnerDirectory& directory, const View& view);

// Adds to the batch that every family of rows is complete up to a commit.
void PutRowsMarkers(const Rocks& rocks, CommitSeq seq, rocksdb::WriteBatch* batch);

// Removes the files of an interrupted fold.
Status ClearFoldFiles(const std::string& store_path);

}  // namespace tacit::store
