#pragma once

#include <cstdint>

#include "base/device.h"

namespace tacit::ops {

// bfloat16: the upper half of a float, round to nearest even.
using Bf16 = uint16_t;

// Round to nearest even; a NaN stays a NaN (its payload is cut, the quiet bit set). Written
// without branches, so that loops over it become vector code.
TACIT_DEVICE inline Bf16 ToBf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40;
  return static_cast<Bf16>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

TACIT_DEVICE inline float FromBf16(Bf16 value) {
  return __builtin_bit_cast(float, uint32_t{value} << 16);
}

}  // namespace tacit::ops
