// Grid noise, one thread a place of 16 numbers.
//   bytes:      8 read and 8 written a number (AddGridNoise), 4 written (FillGridNoise)
//   operations: 3,600 integer, mostly ChaCha20's three blocks, and 600 double a place
// At that a multiprocessor of compute capability 9.0 is bound by integer operations: 57 cycles a
// place: 65 G numbers/s of 132 of them at 1.75 GHz. Measured on an H200: 77 (AddGridNoise), 71
// (FillGridNoise); the keystream alone is good for 112. Registers: see README.md.
#include <cstdint>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/noise/grid_draw.h"
#include "cuda/kernels/noise/noise.h"
#include "noise/grid_gaussian.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128;
constexpr uint64_t kRowIdBits = 48, kRowDimMax = 1 << 16;

struct Draw {
  uint64_t query;
  noise::GridScale scale;
};

TACIT_IN_KERNEL void Sixteen(const NoiseKey* key, const Draw& draw, uint64_t place,
                             int64_t (&steps)[kNumbersPerPlace]) {
  uint32_t words[kKeyWords];
  TACIT_UNROLL
  for (int i = 0; i < kKeyWords; ++i) words[i] = key->words[i];
  DrawPlace(words, draw.query, place, draw.scale, steps);
}

// Adds with wrap-around, as the host does.
TACIT_IN_KERNEL int64_t WrappingAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// A warp's numbers, 16 a thread, on their way to memory: threads put down what they drew, and then
// neighbours take neighbouring numbers. A row more than 16 wide keeps them in different banks.
template <class T>
struct WarpTurn {
  T of[kWarp][kNumbersPerPlace + 1];
};
template <class T>
struct BlockTurn {
  WarpTurn<T> warps[kBlock / kWarp];
};
// Calls body(i, number) for each number of the warp that lies before `size`. All lanes take part.
template <class T, class Body>
TACIT_IN_KERNEL void TurnWarp(const T (&mine)[kNumbersPerPlace], uint64_t size, const Body& body) {
  WarpTurn<T>& turn = SharedAs<BlockTurn<T>>().warps[WarpIndex()];
  TACIT_UNROLL
  for (int i = 0; i < kNumbersPerPlace; ++i) turn.of[LaneIndex()][i] = mine[i];
  SyncWarp();
  const uint64_t first = (GlobalThread() - LaneIndex()) * kNumbersPerPlace;
  TACIT_UNROLL
  for (uint32_t i = 0; i < kNumbersPerPlace; ++i) {
    const uint32_t at = i * kWarp + LaneIndex();
    if (first + at < size) body(first + at, turn.of[at / kNumbersPerPlace][at % kNumbersPerPlace]);
  }
}

TACIT_KERNEL AddKernel(const NoiseKey* key, Draw draw, DeviceSpan<int64_t> values) {
  const uint64_t place = GlobalThread();
  int64_t steps[kNumbersPerPlace] = {};
  if (place * kNumbersPerPlace < values.size) Sixteen(key, draw, place, steps);
  TurnWarp(steps, values.size,
           [&](uint64_t i, int64_t step) { values[i] = WrappingAdd(values[i], step); });
}

TACIT_KERNEL FillKernel(const NoiseKey* key, Draw draw, double factor, DeviceSpan<float> out) {
  const uint64_t place = GlobalThread(), first = place * kNumbersPerPlace;
  if (first >= out.size) return;
  int64_t steps[kNumbersPerPlace];
  Sixteen(key, draw, place, steps);
  TACIT_UNROLL
  for (int i = 0; i < kNumbersPerPlace; ++i)
    if (first + i < out.size)
      out[first + i] = static_cast<float>(static_cast<double>(steps[i]) * factor);
}

TACIT_KERNEL AddToRowsKernel(const NoiseKey* key, Draw draw, DeviceSpan<const uint64_t> rows,
                             uint32_t dim, DeviceSpan<int64_t> values) {
  const uint64_t parts = (dim + kNumbersPerPlace - 1) / kNumbersPerPlace;
  const uint64_t row = GlobalThread() / parts, part = GlobalThread() % parts;
  if (row >= rows.size) return;
  int64_t steps[kNumbersPerPlace];
  Sixteen(key, draw, rows[row] * parts + part, steps);
  int64_t* const to = values.data + row * dim;
  TACIT_UNROLL
  for (int i = 0; i < kNumbersPerPlace; ++i) {
    const uint64_t column = part * kNumbersPerPlace + i;
    if (column < dim) to[column] = WrappingAdd(to[column], steps[i]);
  }
}

TACIT_KERNEL KeystreamKernel(const NoiseKey* key, uint64_t query, uint64_t first_block,
                             DeviceSpan<uint32_t> out) {
  static_assert(kChaChaWords == kNumbersPerPlace);
  const uint64_t block = GlobalThread();
  uint32_t words[kKeyWords], stream[kChaChaWords] = {};
  TACIT_UNROLL
  for (int i = 0; i < kKeyWords; ++i) words[i] = key->words[i];
  if (block * kChaChaWords < out.size) ChaChaBlock(words, first_block + block, query, stream);
  TurnWarp(stream, out.size, [&](uint64_t i, uint32_t word) { out[i] = word; });
}

TACIT_KERNEL WipeKernel(NoiseKey* key) {
  // Volatile: nothing reads the zeros, and they must be written all the same.
  if (GlobalThread() < kKeyWords) static_cast<volatile uint32_t*>(key->words)[GlobalThread()] = 0;
}

Draw MakeDraw(NoiseQuery query, double stddev) {
  return {static_cast<uint64_t>(query), noise::MakeGridScale(stddev, noise::DitherBits(stddev))};
}

uint64_t Places(uint64_t numbers) { return (numbers + kNumbersPerPlace - 1) / kNumbersPerPlace; }

runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

}  // namespace

Status AddGridNoise(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query, double stddev,
                    DeviceSpan<int64_t> values) {
  TACIT_CHECK(key.size == 1);
  runtime::LaunchShape shape = Threads(Places(values.size));
  shape.shared_bytes = sizeof(BlockTurn<int64_t>);
  return Launch(stream, "AddGridNoise", shape, AddKernel, key.data, MakeDraw(query, stddev),
                values);
}

Status FillGridNoise(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query,
                     double stddev, double factor, DeviceSpan<float> out) {
  TACIT_CHECK(key.size == 1);
  return Launch(stream, "FillGridNoise", Threads(Places(out.size)), FillKernel, key.data,
                MakeDraw(query, stddev), factor, out);
}

Status AddGridNoiseToRows(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query,
                          double stddev, DeviceSpan<const uint64_t> rows, uint32_t dim,
                          DeviceSpan<int64_t> values) {
  TACIT_CHECK(key.size == 1 && dim > 0 && dim <= kRowDimMax && values.size == rows.size * dim);
  // The last possible row still has a block number for its last block.
  static_assert((kRowDimMax / kNumbersPerPlace << kRowIdBits) <= UINT64_MAX / kBlocksPerPlace);
  return Launch(stream, "AddGridNoiseToRows", Threads(rows.size * Places(dim)), AddToRowsKernel,
                key.data, MakeDraw(query, stddev), rows, dim, values);
}

Status FillKeystream(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query,
                     uint64_t first_block, DeviceSpan<uint32_t> out) {
  TACIT_CHECK(key.size == 1 && out.size % kChaChaWords == 0);
  runtime::LaunchShape shape = Threads(out.size / kChaChaWords);
  shape.shared_bytes = sizeof(BlockTurn<uint32_t>);
  return Launch(stream, "FillKeystream", shape, KeystreamKernel, key.data,
                static_cast<uint64_t>(query), first_block, out);
}

Status WipeKey(Stream& stream, DeviceSpan<NoiseKey> key) {
  TACIT_CHECK(key.size == 1);
  return Launch(stream, "WipeKey", Threads(kKeyWords), WipeKernel, key.data);
}

}  // namespace tacit::cuda
