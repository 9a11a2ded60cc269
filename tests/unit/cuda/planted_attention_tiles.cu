// attention_tiles.cu with faults: barriers that are left out, a mask that hides nothing, a tile
// that is not visited.
#include "unit/cuda/planted_sequence.h"

#define IsSeen RightIsSeen
#define EndOfKeyTiles RightEndOfKeyTiles
#define FirstQueryTile RightFirstQueryTile
#define AwaitTiles RightAwaitTiles
#define ReleaseTiles RightReleaseTiles
#include "cuda/kernels/sequence/attention_parts.h"
#undef IsSeen
#undef EndOfKeyTiles
#undef FirstQueryTile
#undef AwaitTiles
#undef ReleaseTiles

namespace tacit::cuda {
namespace {

using testing::SequenceFault;

SequenceFault planted = SequenceFault::kNone;

bool IsSeen(uint32_t query, uint32_t key) {
  return planted == SequenceFault::kNotCausal || RightIsSeen(query, key);
}
uint32_t EndOfKeyTiles(uint32_t query_tile) {
  const uint32_t end = RightEndOfKeyTiles(query_tile);
  return planted == SequenceFault::kKeyTileLeftOut && end > 1 ? end - 1 : end;
}
uint32_t FirstQueryTile(uint32_t key_tile) {
  return RightFirstQueryTile(key_tile) + (planted == SequenceFault::kQueryTileLeftOut ? 1 : 0);
}
void AwaitTiles() {
  if (planted != SequenceFault::kTilesNotAwaited) RightAwaitTiles();
}
void ReleaseTiles() {
  if (planted != SequenceFault::kTilesNotReleased) RightReleaseTiles();
}

}  // namespace

void testing::PlantInAttentionTiles(SequenceFault fault) { planted = fault; }

}  // namespace tacit::cuda

#include "cuda/kernels/sequence/attention_tiles.cu"
