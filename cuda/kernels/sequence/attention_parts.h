#pragma once

#include <cstdint>

#include "cuda/device/kernel.h"
#include "cuda/kernels/sequence/attention.h"

// Parts that kernels of attention have in common. In an unnamed namespace, as all that is in
// kernels alone; a test may plant a fault in one of these functions.
namespace tacit::cuda {
namespace {

inline constexpr uint32_t kTile = 64;  // queries or keys that a block works on at a time

constexpr uint32_t TilesOf(uint32_t rows) { return (rows + kTile - 1) / kTile; }

// A head's columns in a crop.
struct Head {
  uint32_t first, rows;  // of the crop
  uint32_t width, column, all;
  uint64_t shares;  // the first row of what its queries keep
};
TACIT_IN_KERNEL Head HeadOf(const AttentionShape& shape, uint32_t rows, uint32_t width) {
  const uint32_t crop = BlockIndex().x, head = BlockIndex().y;
  const uint32_t first = crop == 0 ? 0 : shape.crop_end[crop - 1];
  return {.first = first,
          .rows = shape.crop_end[crop] - first,
          .width = width / shape.heads,
          .column = head * (width / shape.heads),
          .all = width,
          .shares = uint64_t{head} * rows + first};
}

// Says whether a query attends to a key of its crop.
TACIT_IN_KERNEL bool IsSeen(uint32_t query, uint32_t key) { return key <= query; }
// The end of the tiles of keys that a tile of queries sees, and the first tile of queries that sees
// a tile of keys.
TACIT_IN_KERNEL uint32_t EndOfKeyTiles(uint32_t query_tile) { return query_tile + 1; }
TACIT_IN_KERNEL uint32_t FirstQueryTile(uint32_t key_tile) { return key_tile; }

// Waits until the block's tiles are there, or until all warps are done with them.
TACIT_IN_KERNEL void AwaitTiles() { SyncBlock(); }
TACIT_IN_KERNEL void ReleaseTiles() { SyncBlock(); }

}  // namespace
}  // namespace tacit::cuda
