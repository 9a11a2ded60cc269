#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacit::store {

struct ReshardRequest {
  std::string path;
  uint32_t shards = 0;             // 1 to 128; 0: as many as there are
  std::vector<std::string> paths;  // as StoreOptions::shard_paths
  uint64_t memory_bytes = uint64_t{256} << 20;
  // Called repeatedly with the rows written; if it returns false, all is left as it was. May be
  // empty.
  std::function<bool(uint64_t rows)> keep = {};
};

struct Resharded {
  uint32_t before = 0, after = 0;  // shards
  bool done = false;               // false: the store was so already
  uint64_t rows = 0;
};

// Cuts the rows of a store, which no process has open, into other shards, or puts them into other
// folders. It makes no commit: models, ledger and witness stay as they are. All rows are written
// anew beside the old ones, which takes as much room, and one synced batch decides; until then a
// crash leaves the store as it was, and after it as it is to be. kUnavailable: a process has the
// store open, or `keep` gave up. kIo: no room.
Result<Resharded> Reshard(const ReshardRequest& request);

}  // namespace tacit::store
