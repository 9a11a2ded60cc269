#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "store/disk/damage.h"
#include "store/disk/rocks.h"

namespace tacit::store {

// A table or blob of a store, with the SHA-256 that RocksDB computed when it wrote the file.
struct TableFile {
  std::string path;
  uint64_t bytes = 0;
  std::optional<Digest> sha256;  // nothing if RocksDB has none of it
};
// The files that the database consists of now, by path.
std::vector<TableFile> ListTables(const Rocks& rocks);

// Reads a file from the disk, not from the system's cache where that can be helped, and compares
// it. `pace` is called with the number of bytes just read; if it returns false, the rest is not
// read. Returns nothing also for a file that is gone (it was compacted away) or has no checksum.
Result<std::optional<Damage>> CheckTable(const TableFile& file,
                                         const std::function<bool(uint64_t)>& pace);

}  // namespace tacit::store
