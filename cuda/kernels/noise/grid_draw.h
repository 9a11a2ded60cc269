#pragma once

#include <cstdint>

#include "base/device.h"
#include "cuda/kernels/noise/noise.h"
#include "cuda/kernels/parts/chacha.h"
#include "noise/grid_portable.h"

// Grid noise from ChaCha20's keystream, for kernels that draw it where they use it. The numbers are
// those of src/noise/grid_gaussian.h for the same words, bit for bit: it is the same code. In an
// unnamed namespace for the reason that grid_kernel.h gives.
namespace tacit::cuda {
namespace {

TACIT_DEVICE inline void ReadKey(const NoiseKey* key, uint32_t (&words)[kKeyWords]) {
  TACIT_UNROLL
  for (int i = 0; i < kKeyWords; ++i) words[i] = key->words[i];
}

// A place is eight pairs of numbers of three 64-bit words each, which are three blocks.
inline constexpr uint64_t kBlocksPerPlace = 3;

// Draws steps[i] = floor(stddev z_i) + d_i, in steps of the grid. One thread draws the whole place,
// so threads exchange nothing. Constant work.
TACIT_DEVICE inline void DrawPlace(const uint32_t (&key)[kKeyWords], uint64_t query, uint64_t place,
                                   const noise::GridScale& scale,
                                   int64_t (&steps)[kNumbersPerPlace]) {
  uint32_t words[kBlocksPerPlace * kChaChaWords];
  TACIT_UNROLL
  for (uint64_t b = 0; b < kBlocksPerPlace; ++b) {
    uint32_t block[kChaChaWords];
    ChaChaBlock(key, kBlocksPerPlace * place + b, query, block);
    TACIT_UNROLL
    for (int i = 0; i < kChaChaWords; ++i) words[b * kChaChaWords + i] = block[i];
  }
  TACIT_UNROLL
  for (int pair = 0; pair < kNumbersPerPlace / 2; ++pair) {
    const uint32_t* at = words + 6 * pair;
    const uint64_t bits[3] = {at[0] | uint64_t{at[1]} << 32, at[2] | uint64_t{at[3]} << 32,
                              at[4] | uint64_t{at[5]} << 32};
    const auto two = noise::StepsAt<noise::Portable, 0 - noise::kToIntegerBits>(bits, scale, 1);
    steps[2 * pair] = static_cast<int64_t>(two.first);
    steps[2 * pair + 1] = static_cast<int64_t>(two.second);
  }
}

// One draw out of a block of its own: the first number of the pair that its first six words make.
TACIT_DEVICE inline int64_t DrawOne(const uint32_t (&key)[kKeyWords], uint64_t query,
                                    uint64_t block, const noise::GridScale& scale) {
  uint32_t words[kChaChaWords];
  ChaChaBlock(key, block, query, words);
  const uint64_t bits[3] = {words[0] | uint64_t{words[1]} << 32,
                            words[2] | uint64_t{words[3]} << 32,
                            words[4] | uint64_t{words[5]} << 32};
  return static_cast<int64_t>(
      noise::StepsAt<noise::Portable, 0 - noise::kToIntegerBits>(bits, scale, 1).first);
}

}  // namespace
}  // namespace tacit::cuda
