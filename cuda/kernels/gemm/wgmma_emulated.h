#pragma once

// wgmma.h for g++: each name asks the emulator. What the copy engine and a warpgroup do by
// themselves is done here, by threads of the kernel, so that the sanitizers watch it: a tile is
// brought by a thread that waits for a barrier, and a product is computed when it is asked for or
// when it is waited for.
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "cuda/device/emulator.h"
#include "cuda/device/tensor_map.h"
#include "ops/bf16.h"

namespace tacit::cuda::sm90a {

using Barrier = emulator::Counter;

inline uint32_t SharedAddress(const void* pointer) { return emulator::SharedAddress(pointer); }

// The swizzle of 128 bytes, of addresses.
inline uint32_t Swizzled(uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

inline void InitBarrier(Barrier& barrier, uint32_t arrivals) {
  emulator::InitCounter(&barrier, arrivals);
}
inline void ShowBarriers() {}
inline void Arrive(Barrier& barrier) { emulator::Arrive(&barrier, 0); }
inline void ArriveExpecting(Barrier& barrier, uint32_t bytes) { emulator::Arrive(&barrier, bytes); }

// Brings one of the tiles that are on their way.
inline bool BringSomeTile() {
  emulator::TileCopy copy;
  if (!emulator::TakeTile(&copy)) return false;
  const runtime::Tiles& from = copy.from;
  const auto* const data = static_cast<const unsigned char*>(from.data);
  const uint32_t begin = emulator::SharedAddress(copy.to), row_bytes = 2 * from.tile_cols;
  for (uint32_t r = 0; r < from.tile_rows; ++r) {
    for (uint32_t c = 0; c < from.tile_cols; ++c) {
      const uint64_t row = uint64_t{copy.row} + r, col = uint64_t{copy.col} + c;
      uint16_t number = 0;
      if (row < from.rows && col < from.cols)
        std::memcpy(&number, data + row * from.stride_bytes + 2 * col, sizeof(number));
      const uint32_t at = Swizzled(begin + r * row_bytes + 2 * c);
      std::memcpy(emulator::SharedPointer(at, sizeof(number)), &number, sizeof(number));
    }
  }
  emulator::TileHasCome(copy, from.tile_rows * row_bytes);
  return true;
}

inline void BringTile(void* to, const TensorMap& map, uint32_t row, uint32_t col,
                      Barrier& barrier) {
  TACIT_CHECK(emulator::SharedAddress(to) % 1024 == 0,
              "a tile begins at a multiple of 1,024 bytes");
  emulator::TileCopy copy{.from = {},
                          .to = static_cast<unsigned char*>(to),
                          .row = row,
                          .col = col,
                          .counter = &barrier};
  std::memcpy(static_cast<void*>(&copy.from), &map, sizeof(copy.from));
  TACIT_CHECK(copy.from.tile_cols == 64, "rows of 128 bytes are what the swizzle is of");
  emulator::StartTile(copy);
  if (emulator::Draw(4) == 0) BringSomeTile();
}
inline void FetchMap(const TensorMap&) {}

inline void WaitBarrier(Barrier& barrier, uint32_t parity, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  while (!emulator::HasPassed(&barrier, parity))
    if (!BringSomeTile()) emulator::AwaitCounters({file, line});
}

// These are instructions of whole warps, and so keep a warp's lanes together: none arrives at a
// barrier for its warp before the others are where it is.
inline void FenceProducts(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::SyncWarp(~0u, {file, line});
}
inline void CommitProducts() { emulator::CommitProducts(); }

// Computes what is not done, of all groups but the newest `left`; with -1 of those, too, that are
// not closed.
inline void ComputeProducts(int left) {
  for (emulator::AsyncProduct p; emulator::TakeProduct(left, &p);)
    p.compute(p.sum, p.a, p.b, p.adds);
}
template <int n>
void WaitProducts(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  ComputeProducts(n);
  emulator::SyncWarp(~0u, {file, line});
}

template <uint32_t kSums>
void Anew(float (&sum)[kSums]) {
  for (float& one : sum) one = std::numeric_limits<float>::quiet_NaN();
}
template <uint32_t kSums>
void KeepBehind(float (&)[kSums]) {}

// Reads a number of a factor, of which Describe made the description.
inline float NumberOf(uint64_t description, bool across, uint32_t row, uint32_t k) {
  TACIT_CHECK(description >> 62 == 1, "the swizzle of 128 bytes is the one that is known");
  const auto field = [&](int from) {
    return static_cast<uint32_t>(description >> from & 0x3fff) << 4;
  };
  const uint32_t begin = field(0), leading = field(16), stride = field(32);
  const uint32_t at = across ? row / 64 * leading + k / 8 * stride + k % 8 * 128 + row % 64 * 2
                             : row / 8 * stride + row % 8 * 128 + k * 2;
  uint16_t number;
  std::memcpy(&number, emulator::SharedPointer(Swizzled(begin + at), sizeof(number)),
              sizeof(number));
  return ops::FromBf16(number);
}

// The device adds products in an undocumented order; here, in rising k.
template <uint32_t kColumns, bool kAcrossA, bool kAcrossB>
struct Product {
  static void Add(float (&sum)[kColumns / 2], uint64_t a, uint64_t b, bool adds) {
    emulator::StartProduct({.compute = &Compute, .sum = sum, .a = a, .b = b, .adds = adds});
    if (emulator::Draw(2) == 0) ComputeProducts(-1);
  }

 private:
  static void Compute(float* sum, uint64_t a, uint64_t b, bool adds) {
    constexpr uint32_t kDepth = 16;
    const uint32_t warp = emulator::Here().rank / 32 % 4, lane = emulator::Here().rank % 32;
    float of_a[2][kDepth];
    for (uint32_t half = 0; half < 2; ++half)
      for (uint32_t k = 0; k < kDepth; ++k)
        of_a[half][k] = NumberOf(a, kAcrossA, 16 * warp + lane / 4 + 8 * half, k);
    for (uint32_t j = 0; j < kColumns / 8; ++j)
      for (uint32_t which = 0; which < 2; ++which) {
        float* const to[2] = {&sum[4 * j + which], &sum[4 * j + 2 + which]};
        if (!adds) *to[0] = *to[1] = 0;
        for (uint32_t k = 0; k < kDepth; ++k) {
          const float of_b = NumberOf(b, kAcrossB, 8 * j + 2 * (lane % 4) + which, k);
          for (uint32_t half = 0; half < 2; ++half) *to[half] += of_a[half][k] * of_b;
        }
      }
  }
};

}  // namespace tacit::cuda::sm90a
