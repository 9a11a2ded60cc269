#include "cuda/device/kernel.h"
#include "cuda/kernels/noise/grid_draw.h"
#include "cuda/kernels/noise/noise.h"
#include "noise/grid_gaussian.h"
#include "unit/cuda/planted_noise.h"

namespace tacit::cuda {
namespace {

using testing::NoiseFault;

NoiseFault planted = NoiseFault::kNone;

constexpr uint32_t kBlock = 128;

struct Draw {
  NoiseFault fault;
  uint64_t query;
  noise::GridScale scale;
};

void SixteenAt(const NoiseKey& key, const Draw& draw, uint64_t place, int64_t (&steps)[16]) {
  NoiseKey used = key;
  if (draw.fault == NoiseFault::kReplayedKey) used = {{1, 2, 3, 4, 5, 6, 7, 8}};
  if (draw.fault == NoiseFault::kReplayedCounter) place = 0;
  if (draw.fault != NoiseFault::kOverlap)
    return DrawPlace(used.words, draw.query, place, draw.scale, steps);
  // One block further for each place, and not three.
  uint32_t words[48];
  for (uint64_t b = 0; b < 3; ++b) {
    uint32_t block[16];
    ChaChaBlock(used.words, place + b, draw.query, block);
    std::copy(block, block + 16, words + 16 * b);
  }
  for (int pair = 0; pair < 8; ++pair) {
    int64_t n[2] = {0, 0};
    uint64_t bits[3];
    std::memcpy(bits, words + 6 * pair, sizeof(bits));
    const auto two =
        noise::StepsAt<noise::Portable, 0 - noise::kToIntegerBits>(bits, draw.scale, 1);
    n[0] = static_cast<int64_t>(two.first), n[1] = static_cast<int64_t>(two.second);
    steps[2 * pair] = n[0], steps[2 * pair + 1] = n[1];
  }
}

TACIT_KERNEL Kernel(const NoiseKey* key, Draw draw, DeviceSpan<int64_t> values) {
  const uint64_t place = GlobalThread(), first = 16 * place;
  if (first >= values.size || draw.fault == NoiseFault::kDoesNothing) return;
  if (draw.fault == NoiseFault::kLastLeftOut && first + 16 > values.size) return;
  int64_t steps[16];
  SixteenAt(*key, draw, place, steps);
  for (uint64_t i = 0; i < 16 && first + i < values.size; ++i)
    values[first + i] = static_cast<int64_t>(static_cast<uint64_t>(values[first + i]) +
                                             static_cast<uint64_t>(steps[i]));
}

TACIT_KERNEL FillKernel(const NoiseKey* key, Draw draw, double factor, DeviceSpan<float> out) {
  const uint64_t place = GlobalThread(), first = 16 * place;
  if (first >= out.size || draw.fault == NoiseFault::kDoesNothing) return;
  int64_t steps[16];
  SixteenAt(*key, draw, place, steps);
  for (uint64_t i = 0; i < 16 && first + i < out.size; ++i)
    out[first + i] = static_cast<float>(static_cast<double>(steps[i]) * factor);
}

TACIT_KERNEL RowsKernel(const NoiseKey* key, Draw draw, DeviceSpan<const uint64_t> rows,
                        uint32_t dim, DeviceSpan<int64_t> values) {
  const uint64_t parts = (dim + 15) / 16;
  const uint64_t row = GlobalThread() / parts, part = GlobalThread() % parts;
  if (row >= rows.size || draw.fault == NoiseFault::kDoesNothing) return;
  int64_t steps[16];
  SixteenAt(*key, draw, rows[row] * parts + part, steps);
  for (uint64_t i = 0; i < 16 && 16 * part + i < dim; ++i)
    values[row * dim + 16 * part + i] += steps[i];
}

TACIT_KERNEL KeystreamKernel(const NoiseKey* key, NoiseFault fault, uint64_t query, uint64_t first,
                             DeviceSpan<uint32_t> out) {
  const uint64_t b = GlobalThread();
  if (16 * b >= out.size) return;
  NoiseKey used = *key;
  if (fault == NoiseFault::kReplayedKey) used = {{1, 2, 3, 4, 5, 6, 7, 8}};
  uint32_t block[16];
  ChaChaBlock(used.words, first + b, query, block);
  for (uint64_t i = 0; i < 16; ++i) out[16 * b + i] = block[i];
}

TACIT_KERNEL WipeKernel(NoiseKey* key) {
  if (GlobalThread() < 8) key->words[GlobalThread()] = 0;
}

Draw MakeDraw(NoiseQuery query, double stddev) {
  if (planted == NoiseFault::kNarrow) stddev *= 0.99;
  if (planted == NoiseFault::kReplayedQuery) query = NoiseQuery::kDense;
  return {planted, static_cast<uint64_t>(query),
          noise::MakeGridScale(stddev, noise::DitherBits(stddev))};
}

runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

}  // namespace

namespace testing {
void PlantNoiseFault(NoiseFault fault) { planted = fault; }
}  // namespace testing

Status AddGridNoise(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query, double stddev,
                    DeviceSpan<int64_t> values) {
  if (planted == NoiseFault::kNotLaunched) return {};
  return Launch(stream, "PlantedAdd", Threads((values.size + 15) / 16), Kernel, key.data,
                MakeDraw(query, stddev), values);
}

Status FillGridNoise(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query,
                     double stddev, double factor, DeviceSpan<float> out) {
  if (planted == NoiseFault::kNotLaunched) return {};
  return Launch(stream, "PlantedFill", Threads((out.size + 15) / 16), FillKernel, key.data,
                MakeDraw(query, stddev), factor, out);
}

Status AddGridNoiseToRows(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query,
                          double stddev, DeviceSpan<const uint64_t> rows, uint32_t dim,
                          DeviceSpan<int64_t> values) {
  if (planted == NoiseFault::kNotLaunched) return {};
  return Launch(stream, "PlantedRows", Threads(rows.size * ((dim + 15) / 16)), RowsKernel, key.data,
                MakeDraw(query, stddev), rows, dim, values);
}

Status FillKeystream(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query,
                     uint64_t first_block, DeviceSpan<uint32_t> out) {
  return Launch(stream, "PlantedKeystream", Threads(out.size / 16), KeystreamKernel, key.data,
                planted, static_cast<uint64_t>(query), first_block, out);
}

Status WipeKey(Stream& stream, DeviceSpan<NoiseKey> key) {
  return Launch(stream, "PlantedWipe", Threads(8), WipeKernel, key.data);
}

}  // namespace tacit::cuda
