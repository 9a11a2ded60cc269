#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/catalog.h"
#include "store/rocks.h"
#include "store/snapshot_impl.h"

namespace tacit::store {

// Merges the unfolded commits of a view into the rows family as one sorted file, then takes their
// deltas away in one synced batch. A crash in between repeats the fold at the next open, with the
// same outcome. REQUIRES that every commit of the view is on the disk and witnessed: what is folded
// cannot be taken back. Returns the number of rows written.
Result<uint64_t> FoldView(const Rocks& rocks, const Catalog& catalog, const View& view);

// Removes what an interrupted fold left behind.
Status ClearFoldFiles(const std::string& store_path);

}  // namespace tacit::store
