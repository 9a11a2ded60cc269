#pragma once

#include <cstdint>

#include "cuda/device/kernel.h"
#include "cuda/kernels/gemm/mma_tiles.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/vector.h"
#include "cuda/kernels/sequence/attention_parts.h"

// Tiles of attention on their way into shared memory, from numbers of f32, which are rounded, or
// from factors as they are. In an unnamed namespace, as all that is in kernels alone.
namespace tacit::cuda {
namespace {

inline constexpr uint32_t kTileThreads = 128;  // of a block, which brings a tile together

struct AsIs {
  TACIT_IN_KERNEL float operator()(float x) const { return x; }
};
struct Squared {
  TACIT_IN_KERNEL float operator()(float x) const { return x * x; }
};

// The factors of a chunk, of which `left` are there; zeros behind them.
template <class Map>
TACIT_IN_KERNEL Vector<uint16_t, kChunk> ChunkOf(const float* from, uint32_t left, const Map& map) {
  Vector<uint16_t, kChunk> rounded;
  TACIT_UNROLL
  for (uint32_t i = 0; i < kChunk; i += 4) {
    const auto four = LoadVector<4>(from + i, left > i ? left - i : 0);
    TACIT_UNROLL
    for (uint32_t e = 0; e < 4; ++e) Narrow(map(four.x[e]), &rounded.x[i + e]);
  }
  return rounded;
}
TACIT_IN_KERNEL Vector<uint16_t, kChunk> ChunkOf(const uint16_t* from, uint32_t left, AsIs) {
  return LoadVector<kChunk>(from, left);
}

// Brings the tile from a crop's row `row` on; zeros behind the crop's rows and the head's columns.
template <class S, class X, class Map = AsIs>
TACIT_IN_KERNEL void LoadTile(const DeviceMatrix<X>& x, const Head& head, uint32_t column,
                              uint32_t row, S& tile, const Map& map = {}) {
  ForMyChunks<kTileThreads, S>([&](uint32_t r, uint32_t c) {
    Vector<uint16_t, kChunk> rounded = {};
    if (row + r < head.rows && c < head.width)
      rounded = ChunkOf(x.Row(head.first + row + r) + column + c, head.width - c, map);
    *reinterpret_cast<Vector<uint16_t, kChunk>*>(&tile.number[r][c]) = rounded;
  });
}

}  // namespace
}  // namespace tacit::cuda
