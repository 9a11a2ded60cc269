#pragma once

#include <cstdint>

#include "base/device.h"

// ChaCha20's block function (RFC 8439, 2.3), for the device and the host. Unlike AES it needs
// neither instructions nor tables that a GPU lacks: additions, rotations and xors, no address and
// no branch that depends on the key.
//
// RFC 8439 counts 32 bits of blocks and has a nonce of 96. Here, as in Bernstein's original, the
// four words are two numbers of 64 bits: the block, low word first, and the query.
namespace tacit::cuda {

inline constexpr int kKeyWords = 8, kChaChaWords = 16;

TACIT_DEVICE inline uint32_t RotateLeft(uint32_t x, int n) { return x << n | x >> (32 - n); }

TACIT_DEVICE inline void QuarterRound(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) {
  a += b, d = RotateLeft(d ^ a, 16);
  c += d, b = RotateLeft(b ^ c, 12);
  a += b, d = RotateLeft(d ^ a, 8);
  c += d, b = RotateLeft(b ^ c, 7);
}

// 64 bytes of keystream as 16 words.
TACIT_DEVICE inline void ChaChaBlock(const uint32_t (&key)[kKeyWords], uint64_t block,
                                     uint64_t query, uint32_t (&out)[kChaChaWords]) {
  // "expand 32-byte k".
  const uint32_t in[kChaChaWords] = {0x61707865,
                                     0x3320646e,
                                     0x79622d32,
                                     0x6b206574,
                                     key[0],
                                     key[1],
                                     key[2],
                                     key[3],
                                     key[4],
                                     key[5],
                                     key[6],
                                     key[7],
                                     static_cast<uint32_t>(block),
                                     static_cast<uint32_t>(block >> 32),
                                     static_cast<uint32_t>(query),
                                     static_cast<uint32_t>(query >> 32)};
  TACIT_UNROLL
  for (int i = 0; i < kChaChaWords; ++i) out[i] = in[i];
  TACIT_UNROLL
  for (int two_rounds = 0; two_rounds < 10; ++two_rounds) {
    TACIT_UNROLL
    for (int i = 0; i < 4; ++i) QuarterRound(out[i], out[4 + i], out[8 + i], out[12 + i]);
    TACIT_UNROLL
    for (int i = 0; i < 4; ++i)
      QuarterRound(out[i], out[4 + (i + 1) % 4], out[8 + (i + 2) % 4], out[12 + (i + 3) % 4]);
  }
  TACIT_UNROLL
  for (int i = 0; i < kChaChaWords; ++i) out[i] += in[i];
}

}  // namespace tacit::cuda
