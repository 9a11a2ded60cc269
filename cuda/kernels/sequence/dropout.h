#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

namespace tacit::cuda {

// The public coins of a step's units, as model::DropoutCoins draws them.
struct DropCoins {
  uint64_t seed = 0;
  uint32_t kept = 0;  // of 65,536
  float factor = 1;   // of what is kept
  // Per unit: the end of its packed rows, and its id.
  DeviceSpan<const uint32_t> unit_end = {}, id_low = {}, id_high = {};
};

// x *= the factors of this site, `times` times. The same each time: what was dropped once is
// dropped by the backward pass.
Status DropNumbers(Stream& stream, const DropCoins& coins, uint32_t site, uint32_t times,
                   DeviceMatrix<float> x);

}  // namespace tacit::cuda
