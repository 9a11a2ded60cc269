#pragma once

#include <string>

#include "base/result.h"

namespace tacit::store {

// Looks at the one bit of a table that RocksDB acts on before it has checked it: it reads a table's
// properties without their checksum, and where the block's last number says that it has a hash
// index, Debian's RocksDB ends the process. kCorruption names the table. RocksDB reports other
// damage itself. A file that is gone is no error here.
Status CheckTableTail(const std::string& path);
// The same of all tables of a store or checkpoint.
Status CheckTableTails(const std::string& store);

}  // namespace tacit::store
