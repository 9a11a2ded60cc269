#pragma once

#include <cstdint>
#include <span>
#include <vector>

// Cuts a step's units into sum blocks (StepBatch::sum_block_end).
namespace tacit::stream {

// The records of a block. A step of all offsets has no more in any; where a share of the offsets is
// drawn, or the unit is the user, it is their mean.
inline constexpr uint64_t kSumBlockRecords = 256;

// Unit event: a block is the next `kSumBlockRecords / share` offsets, `share` of which are drawn.
// REQUIRES ascending offsets.
std::vector<uint32_t> BlocksByOffset(std::span<const uint64_t> offset, double share);

// Unit user: the hash of a user's id says which of the blocks it is in, and `records` how many
// there are. A user's examples end at unit_end. Ids that are chosen to fill one block cost time,
// and no privacy: a model adds a large block in short pieces. REQUIRES ascending hashes.
std::vector<uint32_t> BlocksByUser(std::span<const uint64_t> hashes,
                                   std::span<const uint32_t> unit_end, double records);

}  // namespace tacit::stream
