// The sum of a product's parts, one thread a number.
//   bytes:      4 (splits + 1) a number, and 4 more with beta; read and written in whole lines
//   operations: splits additions a number
// Memory bounds it: 599 x 598 numbers in 5 splits are 8.6 MB, 3 us at 3 TB/s. Registers: README.md.
//
// AddPieces, by the same threads: 4 bytes a number and piece, 32 a number; an addition in double a
// piece. 599 x 598 numbers of 16 pieces are 34 MB, 12 us: of a step of 16,384 four times that and
// layer. Not measured on a card.
#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/gemm/gemm.h"
#include "cuda/kernels/gemm/gemm_sm90a.h"
#include "mechanism/nearest.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 256;

TACIT_KERNEL AddSplitsKernel(uint32_t splits, const float* work, float beta,
                             DeviceMatrix<float> c) {
  const uint64_t i = GlobalThread(), numbers = uint64_t{c.rows} * c.cols;
  if (i >= numbers) return;
  float* const to = c.Row(i / c.cols) + i % c.cols;
  float sum = beta == 0 ? 0.0f : *to;
  for (uint32_t s = 0; s < splits; ++s) sum += work[s * numbers + i];
  *to = sum;
}

TACIT_KERNEL AddPiecesKernel(GemmPieces pieces, DeviceSpan<const uint32_t> closes,
                             const float* work, double per_step, DeviceSpan<double> open,
                             DeviceSpan<int64_t> sums) {
  const uint64_t i = GlobalThread();
  if (i >= sums.size) return;
  double block = open[i];
  int64_t sum = sums[i];
  for (uint32_t p = 0; p < pieces.count; ++p) {
    block += work[p * sums.size + i];
    if (closes[pieces.first + p] == 0) continue;
    sum += mechanism::Nearest(block * per_step);
    block = 0;
  }
  open[i] = block;
  sums[i] = sum;
}

uint64_t Tiles(uint32_t m, uint32_t n, uint32_t rows, uint32_t columns) {
  return ((uint64_t{m} + rows - 1) / rows) * ((uint64_t{n} + columns - 1) / columns);
}

}  // namespace

GemmWay OwnWay(const DeviceFacts& facts) {
  return HasWgmma() && facts.major == 9 && facts.minor == 0 ? GemmWay::kWgmma : GemmWay::kMma;
}

GemmPlan PlanGemm(int multiprocessors, uint32_t m, uint32_t n, uint32_t k, GemmWay way) {
  // A part shorter than this costs more to add than it gains.
  constexpr uint32_t kShortest = 256;
  const auto processors = static_cast<uint64_t>(std::max(1, multiprocessors));
  GemmPlan plan{.tile = 128, .splits = 1, .way = way};
  if (m == 0 || n == 0) return plan;
  uint64_t tiles = 0;
  if (way == GemmWay::kWgmma) {
    // Tiles of 64 columns read a's rows twice, so they are for narrow products, and where tiles of
    // 128 would leave a third of the multiprocessors idle and k is too short to be split.
    if (n <= 64 || (3 * Tiles(m, n, 128, 128) < 2 * processors && k < 2 * kShortest))
      plan.tile = 64;
    tiles = Tiles(m, n, 128, plan.tile);
  } else {
    if (Tiles(m, n, 128, 128) >= processors) return plan;
    plan.tile = 64;
    tiles = Tiles(m, n, 64, 64);
  }
  const uint64_t wanted = processors / std::max<uint64_t>(1, tiles);
  plan.splits = static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, k / kShortest + 1));
  return plan;
}

GemmPlan PlanRows(uint32_t n, GemmWay way) {
  const bool wide = way == GemmWay::kWgmma && n > 64;
  return {.tile = wide ? 128u : 64u, .splits = 1, .way = way};
}

size_t GemmWorkFloats(const GemmPlan& plan, uint32_t m, uint32_t n) {
  return plan.splits == 1 ? 0 : size_t{plan.splits} * m * n;
}

uint32_t TileOfPieces(const DeviceFacts& facts, uint32_t m, uint32_t n, uint32_t count) {
  const auto processors = static_cast<uint64_t>(std::max(1, facts.multiprocessors));
  return Tiles(m, n, 128, 128) * count >= processors ? 128 : 64;
}

Status AddPieces(Stream& stream, const GemmPieces& pieces, DeviceSpan<const uint32_t> closes,
                 DeviceSpan<const float> work, double per_step, DeviceSpan<double> open,
                 DeviceSpan<int64_t> sums) {
  TACIT_CHECK(open.size == sums.size && closes.size == pieces.end.size &&
              work.size >= pieces.count * sums.size);
  if (pieces.count == 0) return {};
  return Launch(stream, "AddPieces",
                {.grid = BlocksFor(sums.size, kBlock), .block = {kBlock}, .shared_bytes = 0},
                AddPiecesKernel, pieces, closes, work.data, per_step, open, sums);
}

Status AddSplits(Stream& stream, uint32_t splits, DeviceSpan<const float> work, float beta,
                 DeviceMatrix<float> c) {
  const uint64_t numbers = uint64_t{c.rows} * c.cols;
  TACIT_CHECK(work.size >= splits * numbers);
  return Launch(stream, "AddSplits",
                {.grid = BlocksFor(numbers, kBlock), .block = {kBlock}, .shared_bytes = 0},
                AddSplitsKernel, splits, work.data, beta, c);
}

}  // namespace tacit::cuda
