#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/stream.h"

// Faults in the products by wgmma, planted on a device where tests ask for them. None of them reads
// or writes outside of what a block has, or waits for what does not come.
namespace tacit::cuda::testing {

enum class WgmmaFault : uint32_t {
  kNone,
  kStride,     // eight rows of a tile are described as half as far apart as they are
  kLeading,    // so is the next tile of a factor that lies across k
  kNoSwizzle,  // tiles are described as if they were not swizzled
  kRowOff,     // the copy engine brings tiles from one row further on
  kTooEarly,   // products begin before a stage has come: their phase is the one before
};
Status PlantInWgmma(Stream& stream, WgmmaFault fault);

}  // namespace tacit::cuda::testing
