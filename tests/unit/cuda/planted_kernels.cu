#include "base/check.h"
#include "cuda/device/kernel.h"
#include "unit/cuda/planted_kernels.h"

namespace tacit::cuda::testing {
namespace {

constexpr uint32_t kBlock = 64;

struct alignas(16) Tile {
  uint32_t numbers[kBlock];
};

// Faults of a block's or a warp's order; true where the thread is to go no further.
TACIT_IN_KERNEL bool Stray(Plant plant, uint32_t i) {
  switch (plant) {
    case Plant::kDifferentBarriers:
      if (i % 2 == 0) {
        SyncBlock();
      } else {
        SyncBlock();
      }
      return false;
    case Plant::kDifferentCollectives:
      return i % 2 == 0 ? Ballot(true) == 0 : Shuffle(i, 0) == kBlock;
    case Plant::kBarrierInsideOneWarp:
      if (i != 5) SyncWarp(kAllLanes);
      return false;
    case Plant::kEndedLane:
      if (i % kWarp == 3) return true;
      SyncWarp(kAllLanes & ~(1u << 3));  // the lane has surely ended after this
      return Shuffle(i, 3) == kBlock;
    case Plant::kNotInItsMask:
      return Shuffle(i, 0, 1u << 7) == kBlock;
    default:
      return false;
  }
}

TACIT_IN_KERNEL void Bring(Plant plant, Tile& tile, DeviceSpan<const uint32_t> in, uint32_t i) {
  if (i >= kBlock / 4) return;
  const uint32_t* from = &in[uint64_t{BlockIndex().x} * kBlock + 4 * i];
  CopyAsync16(&tile.numbers[4 * i] + (plant == Plant::kUnaligned ? 1 : 0), from, true);
  CommitCopies();
  if (plant == Plant::kReadsBeforeWait) {
    WaitCopies<1>();
  } else if (plant != Plant::kEndsBeforeWait) {
    WaitCopies<0>();
  }
}

TACIT_KERNEL PlantedKernel(Plant plant, DeviceSpan<const uint32_t> in, DeviceSpan<uint32_t> out) {
  struct Large {
    Tile tiles[2];
  };
  Tile& tile = plant == Plant::kTooMuchShared ? SharedAs<Large>().tiles[1] : SharedAs<Tile>();
  const uint32_t i = ThreadIndex().x;
  if (Stray(plant, i)) return;
  const bool copies = plant == Plant::kReadsBeforeWait || plant == Plant::kEndsBeforeWait ||
                      plant == Plant::kUnaligned;
  if (copies) {
    Bring(plant, tile, in, i);
  } else {
    tile.numbers[i + (plant == Plant::kBehindShared ? 1 : 0)] = in[GlobalThread()];
  }
  if (plant == Plant::kMissingWarpSync) {
    // Every lane's neighbour has written when a shuffle ends; nothing says that it is seen.
    const uint32_t nothing = 0 * Shuffle(i, 0);
    out[GlobalThread()] = tile.numbers[i ^ 1] + nothing;
    return;
  }
  if (plant != Plant::kMissingBarrier) SyncBlock();
  const uint64_t to = GlobalThread() + (plant == Plant::kBehindBuffer ? 1 : 0);
  out[plant == Plant::kBlocksRace ? 0 : to] = tile.numbers[kBlock - 1 - i];
  if (plant == Plant::kReadsBeforeWait && i < kBlock / 4) WaitCopies<0>();
}

TACIT_KERNEL HalfWarpKernel(DeviceSpan<uint32_t> out) { out[0] = Ballot(true); }

}  // namespace

Status RunPlanted(Stream& stream, Plant plant, DeviceSpan<const uint32_t> in,
                  DeviceSpan<uint32_t> out) {
  TACIT_CHECK(in.size % kBlock == 0 && in.size == out.size);
  if (plant == Plant::kLanesThatAreNotThere) {
    return Launch(stream, "HalfWarp", {.grid = {1}, .block = {16}, .shared_bytes = 0},
                  HalfWarpKernel, out);
  }
  return Launch(
      stream, "Planted",
      {.grid = BlocksFor(in.size, kBlock), .block = {kBlock}, .shared_bytes = sizeof(Tile)},
      PlantedKernel, plant, in, out);
}

}  // namespace tacit::cuda::testing
