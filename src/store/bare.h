#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tacit::store {

// Writes rows under keys like ours into a new RocksDB as it comes, in batches of which each is
// synced, and returns the seconds that it took. `folder` must not be there, and is removed. This
// measures what RocksDB itself can take, as the limit to compare a store with; nothing in the
// product uses it.
Result<double> WriteBareRows(const std::string& folder, uint64_t rows, uint32_t floats,
                             uint64_t batch_rows);

}  // namespace tacit::store
