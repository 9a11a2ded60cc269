#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/user_uses.h"

// Cuts a step's units into sum blocks (StepBatch::sum_block_end).
namespace tacit::stream {

// The records of a block. A step of all offsets has no more in any; where a share of the offsets is
// drawn, or the unit is the user, it is their mean.
inline constexpr uint64_t kSumBlockRecords = 256;

// Unit event: a block is the next `kSumBlockRecords / share` offsets, `share` of which are drawn.
// REQUIRES ascending offsets.
std::vector<uint32_t> BlocksByOffset(std::span<const uint64_t> offset, double share);

// Unit user: the keyed hash of a user says which of the blocks it is in, and `records` how many
// there are. A user's examples end at unit_end. REQUIRES users in the order of their hashes.
std::vector<uint32_t> BlocksByUser(std::span<const UserUses> users,
                                   std::span<const uint32_t> unit_end, double records);

}  // namespace tacit::stream
