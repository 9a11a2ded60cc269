#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacit::store {

// Every value of the store but the rows carries its own checksum, so that a read finds damage from
// between two of RocksDB's checks (bad memory, a faulty copy). The notation is base/bytes.h's.
//     sealed  := checksum:u64 payload         XXH3-64 of the payload, which is the rest

// The sealed form of one payload.
std::string Seal(std::string_view payload);
// The checksum of a payload given in pieces.
uint64_t SealOf(std::span<const std::string_view> pieces);
// Returns the payload inside, or kCorruption naming `what`.
Result<std::string_view> Unseal(std::string_view sealed, std::string_view what);

}  // namespace tacit::store
