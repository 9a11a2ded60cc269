#pragma once

#include <bit>
#include <cstdint>

#include "ops/backend.h"

namespace tacit::ops {

// Round to nearest even; a NaN stays a NaN (its payload is cut, the quiet bit set). Written
// without branches, so that loops over it become vector code.
inline Bf16 ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40;
  return static_cast<Bf16>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

inline float FromBf16(Bf16 value) { return std::bit_cast<float>(uint32_t{value} << 16); }

}  // namespace tacit::ops
