#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/learner_directory.h"
#include "store/rocks.h"
#include "store/snapshot_impl.h"

namespace tacit::store {

// Called repeatedly while a fold writes. If it returns false, the fold gives up with kUnavailable
// and nothing has changed. May be empty.
using KeepFolding = std::function<bool(uint64_t rows_written, uint64_t rows)>;

// A row of an unfolded commit.
struct FoldRow {
  RowPlace place;
  size_t age;  // index in the overlay: higher is newer
  std::span<const float> floats;
};
// The newest version of every row in the view's overlay, ascending by place; valid as long as the
// view. Nothing if `keep` gave up.
std::optional<std::vector<FoldRow>> MergeOverlay(const LearnerDirectory& directory,
                                                 const View& view, const KeepFolding& keep = {});

// Merges the unfolded commits of a view into the rows family as one sorted file, then deletes their
// deltas in one synced batch. After a crash in between, the next open repeats the fold with the
// same outcome. REQUIRES that every commit of the view is on disk and witnessed: a folded commit
// cannot be undone. Returns the number of rows written.
Result<uint64_t> FoldView(const Rocks& rocks, const LearnerDirectory& directory, const View& view,
                          const KeepFolding& keep = {});

// Removes the files of an interrupted fold.
Status ClearFoldFiles(const std::string& store_path);

}  // namespace tacit::store
