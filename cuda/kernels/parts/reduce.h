#pragma once

#include <cstdint>

#include "cuda/device/kernel.h"

// Sums over a warp or a block, by fixed trees: the same bits in every run. Inside of kernels.
namespace tacit::cuda {

// The sum over the warp's lanes, the same in every lane. All lanes must be there.
template <class T>
TACIT_IN_KERNEL T WarpSum(T mine) {
  for (uint32_t bits = kWarp / 2; bits > 0; bits /= 2) mine += ShuffleXor(mine, bits);
  return mine;
}

// The sum over four neighbouring lanes, the first of which is a multiple of four, the same in each.
// All lanes of the warp must be there.
template <class T>
TACIT_IN_KERNEL T QuadSum(T mine) {
  mine += ShuffleXor(mine, 1);
  return mine + ShuffleXor(mine, 2);
}

// The sum over the block's threads, the same in every thread. `scratch` holds a number a warp; it
// may be used again after the call. All threads must be there.
template <class T>
TACIT_IN_KERNEL T BlockSum(T mine, T* scratch) {
  const T of_warp = WarpSum(mine);
  if (LaneIndex() == 0) scratch[WarpIndex()] = of_warp;
  SyncBlock();
  T sum = scratch[0];
  for (uint32_t w = 1; w < BlockSize().x / kWarp; ++w) sum += scratch[w];
  SyncBlock();
  return sum;
}

}  // namespace tacit::cuda
