#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

// The place of a thing that is not listed.
inline constexpr uint32_t kNone = 0xffffffff;

// The number of u32 that RankFlags works with, for this number of flags.
size_t RankWork(size_t flags);
// rank[i] = `from` + the number of flags before i that are set; count[0] = `from` + the number of
// all that are set. `from` is read from device memory, or 0 where it is empty. The ranks are those
// of the flags' order, not of the order of blocks. `count` may be `from`.
Status RankFlags(Stream& stream, DeviceSpan<const uint8_t> flags, DeviceSpan<const uint32_t> from,
                 DeviceSpan<uint32_t> work, DeviceSpan<uint32_t> rank, DeviceSpan<uint32_t> count);

// out[rank[i]] = first + i for the flags that are set.
Status ListNumbers(Stream& stream, DeviceSpan<const uint8_t> flags, uint32_t first,
                   DeviceSpan<const uint32_t> rank, DeviceSpan<uint32_t> out);

}  // namespace tacit::cuda
