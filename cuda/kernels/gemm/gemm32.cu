// Products of f32 matrices with f32 sums, by fused multiply-adds (TF32 would lose what the contract
// promises).
//   bytes:      4 (m k ceil(n / tile) + k n ceil(m / tile)) read, 4 m n written
//   operations: 2 m n k
// A block of 256 threads computes a tile of c; each thread keeps a square of it in registers. Both
// factors go through shared memory, 16 of k at a time and in two turns: a thread loads the next 16
// into registers while it multiplies, and one barrier a turn is enough.
//
// Forecast: half of the f32 peak, 30 TFLOP/s; the bars are those of bf16, and nothing has been
// measured. Registers: README.md.
#include <cstdint>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/gemm/gemm_args.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kDepth = 16;     // of k at a time
constexpr uint32_t kThreads = 256;  // 16 x 16, each a square of the tile
constexpr uint32_t kSquares = 16;
constexpr uint32_t kPad = 4;

template <uint32_t kSide>
struct alignas(16) Turns {
  float a[2][kDepth][kSide + kPad];  // the tile's rows side by side for each k
  float b[2][kDepth][kSide + kPad];
};

// Loads the numbers of a factor that this thread brings: x(row, col) of a tile whose side lies
// along rows, or, transposed, along columns. Zeros where the factor ends.
template <uint32_t kSide, bool kSideAlongColumns>
TACIT_IN_KERNEL void LoadNumbers(float (&to)[kSide / kSquares], const DeviceMatrix<const float>& x,
                                 uint32_t side0, uint32_t side_end, uint32_t k0, uint32_t k_end) {
  TACIT_UNROLL
  for (uint32_t i = 0; i < kSide / kSquares; ++i) {
    const uint32_t at = ThreadIndex().x + i * kThreads;
    const uint32_t side = side0 + (kSideAlongColumns ? at % kSide : at / kDepth);
    const uint32_t k = k0 + (kSideAlongColumns ? at / kSide : at % kDepth);
    const bool real = side < side_end && k < k_end;
    to[i] = !real ? 0.0f : kSideAlongColumns ? x.Row(k)[side] : x.Row(side)[k];
  }
}
template <uint32_t kSide, bool kSideAlongColumns>
TACIT_IN_KERNEL void StoreNumbers(const float (&from)[kSide / kSquares],
                                  float (&to)[kDepth][kSide + kPad]) {
  TACIT_UNROLL
  for (uint32_t i = 0; i < kSide / kSquares; ++i) {
    const uint32_t at = ThreadIndex().x + i * kThreads;
    if constexpr (kSideAlongColumns) {
      to[at / kSide][at % kSide] = from[i];
    } else {
      to[at % kDepth][at / kDepth] = from[i];
    }
  }
}

template <uint32_t kSide, bool kTransA, bool kTransB>
TACIT_KERNEL GemmKernel(GemmArgs<float> g) {
  constexpr uint32_t kEach = kSide / kSquares;
  auto& turns = SharedAs<Turns<kSide>>();
  const uint32_t m0 = BlockIndex().y * kSide, n0 = BlockIndex().x * kSide;
  const SplitOfK split(g, BlockIndex().z);
  const uint32_t k_begin = split.begin, k_end = split.end;
  const uint32_t steps = (k_end - k_begin + kDepth - 1) / kDepth;
  const uint32_t my_m = ThreadIndex().x / kSquares * kEach;
  const uint32_t my_n = ThreadIndex().x % kSquares * kEach;
  float next_a[kEach], next_b[kEach], sum[kEach][kEach] = {};
  const auto load = [&](uint32_t step) {
    const uint32_t k = k_begin + step * kDepth;
    LoadNumbers<kSide, kTransA>(next_a, g.a, m0, g.m, k, k_end);
    LoadNumbers<kSide, !kTransB>(next_b, g.b, n0, g.n, k, k_end);
  };
  const auto store = [&](uint32_t step) {
    StoreNumbers<kSide, kTransA>(next_a, turns.a[step % 2]);
    StoreNumbers<kSide, !kTransB>(next_b, turns.b[step % 2]);
  };
  if (steps > 0) {
    load(0);
    store(0);
  }
  for (uint32_t step = 0; step < steps; ++step) {
    SyncBlock();
    if (step + 1 < steps) load(step + 1);
    TACIT_UNROLL
    for (uint32_t k = 0; k < kDepth; ++k) {
      float a[kEach], b[kEach];
      TACIT_UNROLL
      for (uint32_t i = 0; i < kEach; ++i) a[i] = turns.a[step % 2][k][my_m + i];
      TACIT_UNROLL
      for (uint32_t j = 0; j < kEach; ++j) b[j] = turns.b[step % 2][k][my_n + j];
      TACIT_UNROLL
      for (uint32_t i = 0; i < kEach; ++i) {
        TACIT_UNROLL
        for (uint32_t j = 0; j < kEach; ++j) sum[i][j] = Fma(a[i], b[j], sum[i][j]);
      }
    }
    // The other turn's numbers were multiplied before this step's barrier.
    if (step + 1 < steps) store(step + 1);
  }
  float* const c = g.c.data + uint64_t{BlockIndex().z} * g.m * g.n;
  TACIT_UNROLL
  for (uint32_t i = 0; i < kEach; ++i) {
    TACIT_UNROLL
    for (uint32_t j = 0; j < kEach; ++j) {
      const uint32_t row = m0 + my_m + i, col = n0 + my_n + j;
      if (row >= g.m || col >= g.n) continue;
      float* const to = c + row * g.c.stride + col;
      *to = g.beta == 0 ? sum[i][j] : *to + sum[i][j];
    }
  }
}

template <uint32_t kSide, bool kTransA, bool kTransB>
Status LaunchTiles(Stream& stream, const GemmArgs<float>& args, uint32_t splits,
                   const char* name = "Gemm32") {
  const uint32_t down = (args.m + kSide - 1) / kSide;
  TACIT_CHECK(down <= 65535, "a matrix of too many rows");
  return Launch(stream, name,
                {.grid = {(args.n + kSide - 1) / kSide, down, splits},
                 .block = {kThreads},
                 .shared_bytes = sizeof(Turns<kSide>)},
                GemmKernel<kSide, kTransA, kTransB>, args);
}

template <uint32_t kSide>
Status LaunchForm(Stream& stream, Form form_a, Form form_b, const GemmArgs<float>& args,
                  uint32_t splits) {
  const bool ta = form_a == Form::kTransposed, tb = form_b == Form::kTransposed;
  if (ta && tb) return LaunchTiles<kSide, true, true>(stream, args, splits);
  if (ta) return LaunchTiles<kSide, true, false>(stream, args, splits);
  if (tb) return LaunchTiles<kSide, false, true>(stream, args, splits);
  return LaunchTiles<kSide, false, false>(stream, args, splits);
}

}  // namespace

Status Gemm32(Stream& stream, Form form_a, DeviceMatrix<const float> a, Form form_b,
              DeviceMatrix<const float> b, float beta, DeviceMatrix<float> c, const GemmPlan& plan,
              DeviceSpan<float> work) {
  const auto args = MakeGemmArgs(form_a, a, form_b, b, beta, c, plan, work, kDepth);
  if (args.m == 0 || args.n == 0) return {};
  TACIT_RETURN_IF_ERROR(plan.tile == 128
                            ? LaunchForm<128>(stream, form_a, form_b, args, plan.splits)
                            : LaunchForm<64>(stream, form_a, form_b, args, plan.splits));
  return plan.splits == 1 ? Status() : AddSplits(stream, plan.splits, work, beta, c);
}

Status Gemm32Pieces(Stream& stream, DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                    const GemmPieces& pieces, DeviceSpan<float> work) {
  constexpr const char* kName = "Gemm32Pieces";
  const auto args = MakePieceArgs(a, b, pieces, work);
  if (args.m == 0 || args.n == 0 || pieces.count == 0) return {};
  return TileOfPieces(stream.device().facts(), args.m, args.n, pieces.count) == 64
             ? LaunchTiles<64, true, false>(stream, args, pieces.count, kName)
             : LaunchTiles<128, true, false>(stream, args, pieces.count, kName);
}

}  // namespace tacit::cuda
