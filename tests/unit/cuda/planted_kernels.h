#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"

// Kernels with one fault each, for the emulator to find. Never run on a device.
namespace tacit::cuda::testing {

enum class Plant {
  kNone,
  kMissingBarrier,        // Reverse without its SyncBlock
  kMissingWarpSync,       // lanes read what their neighbour wrote, ordered by a shuffle alone
  kBlocksRace,            // every block writes the first number
  kDifferentBarriers,     // half of the threads wait at one SyncBlock, the others at another
  kDifferentCollectives,  // half of a warp shuffles while the other votes
  kBarrierInsideOneWarp,  // one warp waits for a lane that waits for the block
  kEndedLane,             // a shuffle of all lanes when one has returned
  kNotInItsMask,
  kLanesThatAreNotThere,  // a full mask in a warp of 16
  kBehindShared,          // one number past the shared memory
  kBehindBuffer,          // one number past `out`
  kTooMuchShared,         // more shared memory than the launch gave
  kReadsBeforeWait,       // asynchronous copies are read before they are waited for
  kEndsBeforeWait,        // they are never waited for
  kUnaligned,             // 16 bytes to an odd place
};

// Blocks of 64 threads turn their numbers around, as far as the fault lets them. REQUIRES whole
// blocks and equal sizes.
Status RunPlanted(Stream& stream, Plant plant, DeviceSpan<const uint32_t> in,
                  DeviceSpan<uint32_t> out);

}  // namespace tacit::cuda::testing
