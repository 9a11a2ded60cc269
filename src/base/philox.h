#pragma once

#include <cstdint>

#include "base/device.h"

namespace tacit {

// Philox4x32-10 (Salmon et al., SC'11) in place, for kernels as well. hash.h has it as a value.
TACIT_DEVICE inline void PhiloxInPlace(uint32_t (&c)[4], uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t c1 = c[1], c3 = c[3];
    c[0] = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c[1] = static_cast<uint32_t>(product1);
    c[2] = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c[3] = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

}  // namespace tacit
