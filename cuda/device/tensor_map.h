#pragma once

#include <cstdint>

#include "base/result.h"

namespace tacit::cuda {

class Device;

// A matrix as the device's copy engine must know it to bring tiles of it (CUtensorMap). A value,
// passed to kernels as it is.
struct alignas(64) TensorMap {
  uint64_t word[16] = {};
};

// A row-major bf16 matrix and the tiles in which it is brought. A row of a tile is 64 numbers or
// fewer, 128 bytes of shared memory, and 16-byte pieces of it are swizzled: the piece p of row r
// lies at p ^ (r % 8). What lies outside of the matrix becomes zero, and numbers between its rows
// are never read.
struct TileFacts {
  const uint16_t* data = nullptr;
  uint32_t rows = 0, cols = 0;
  uint64_t stride = 0;  // in numbers
  uint32_t tile_rows = 0, tile_cols = 0;
};

// REQUIRES a matrix that is not empty, data that begins at a multiple of 16 bytes, a stride that is
// a multiple of 8, and tiles of at most 256 rows and 64 columns. Puts nothing on a stream.
Result<TensorMap> MakeTensorMap(Device& device, const TileFacts& facts);

}  // namespace tacit::cuda
