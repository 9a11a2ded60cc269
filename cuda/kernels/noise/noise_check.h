#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

// Draws under a known key and compares every number with the CPU's own. Run before the first step:
// a kernel that does nothing, or that a compiler got wrong, would silently leave noise out. Fails
// with kCorruption: "GPU 0 does not compute what the CPU does (noise): it must not train".
Status CheckNoise(Stream& stream);
// The device memory that it takes meanwhile, handed out in such pieces, is less.
constexpr uint64_t NoiseCheckBytesMost(uint64_t piece_bytes) { return 40'000 + 3 * piece_bytes; }

}  // namespace tacit::cuda
