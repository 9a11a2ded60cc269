#pragma once

#include <cstdint>

#include "cuda/device/kernel.h"

namespace tacit::cuda {

// The place of the first of these ascending numbers that is not below `wanted`; their number if all
// are.
TACIT_IN_KERNEL uint64_t FirstNotBelow(DeviceSpan<const uint32_t> sorted, uint32_t wanted) {
  uint64_t begin = 0, end = sorted.size;
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    if (sorted[middle] < wanted) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

}  // namespace tacit::cuda
