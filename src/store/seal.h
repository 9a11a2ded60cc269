#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacit::store {

// Every value of the store but the rows carries its own checksum, so that a value damaged between
// two of RocksDB's checks (memory, a copy gone wrong) is found when it is read:
//   u64 XXH3-64 of the payload | payload

// The sealed form of one payload.
std::string Seal(std::string_view payload);
// The checksum of a payload that lies in pieces.
uint64_t SealOf(std::span<const std::string_view> pieces);
// The payload inside, or kCorruption naming `what`.
Result<std::string_view> Unseal(std::string_view sealed, std::string_view what);

}  // namespace tacit::store
