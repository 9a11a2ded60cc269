#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/stream.h"

// Faults in the products by wgmma, planted where tests ask for them.
namespace tacit::cuda::testing {

enum class WgmmaFault : uint32_t {
  kNone,
  // A card bears these: nothing is read or written outside of what a block has, and nobody waits
  // for what does not come.
  kStride,     // eight rows of a tile are described as half as far apart as they are
  kLeading,    // so is the next tile of a factor that lies across k
  kNoSwizzle,  // tiles are described as if they were not swizzled
  kRowOff,     // the copy engine brings tiles from one row further on
  kTooEarly,   // products begin before a stage has come: their phase is the one before
  // These are for the emulated device alone.
  kOverwrites,   // a stage is brought before all are done with the one that it takes the place of
  kKeepsStages,  // nobody says that a stage is done with
  kReadsEarly,   // sums are read while products run
};
Status PlantInWgmma(Stream& stream, WgmmaFault fault);

}  // namespace tacit::cuda::testing
