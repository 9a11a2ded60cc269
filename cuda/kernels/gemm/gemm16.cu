// Products of bf16 matrices with f32 sums, on the tensor cores (mma.sync m16n8k16).
//   bytes:      2 (m k ceil(n / tile) + k n ceil(m / tile)) read, 4 m n written, or 2 m n by an end
//               that rounds (and 2 m n read by the mask); tiles that several blocks read come from
//               the second-level cache
//   operations: 2 m n k
// A block computes a tile of c. Its shared memory is a ring of stages of both factors, brought by
// cp.async: while the warps multiply one stage, the next ones are on their way, and one barrier a
// stage is enough. Rows of a stage are 16 bytes longer than their numbers, so that the eight rows
// that ldmatrix reads at once lie in different banks. Factors lie in shared memory as they lie in
// device memory; a transposed one is turned by ldmatrix.
//
// Measured on an H200: 122 TFLOP/s at 16,384 x 598 x 598 and 244 at 8,192^3, where gemm_sm90a.cu
// has 181 and 519. Registers: README.md.
#include <cstdint>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/gemm/gemm_args.h"
#include "cuda/kernels/gemm/gemm_ends.h"
#include "cuda/kernels/gemm/gemm_sm90a.h"
#include "cuda/kernels/gemm/mma_tiles.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kDepth = 64;           // of k in a stage
constexpr uint32_t kSquaresColumns = 32;  // of a warp, hence of a part of a row's squares

// The warps of a block share a tile as `kWarpsM` x `kWarpsN`, each 16 kRows x 16 kColumns numbers.
template <uint32_t kSide>
struct Shape;
template <>
struct Shape<128> {
  static constexpr uint32_t kWarpsM = 2, kWarpsN = 4, kRows = 4, kColumns = 2, kStages = 4;
};
template <>
struct Shape<64> {
  static constexpr uint32_t kWarpsM = 2, kWarpsN = 2, kRows = 2, kColumns = 2, kStages = 3;
};

static_assert(16 * Shape<128>::kColumns == kSquaresColumns &&
              16 * Shape<64>::kColumns == kSquaresColumns);

template <uint32_t kSide, bool kTransA, bool kTransB>
struct Ring {
  using A = Stage<kTransA ? kDepth : kSide, kTransA ? kSide : kDepth>;
  using B = Stage<kTransB ? kSide : kDepth, kTransB ? kDepth : kSide>;
  A a[Shape<kSide>::kStages];
  B b[Shape<kSide>::kStages];
};

template <uint32_t kSide, bool kTransA, bool kTransB, class End>
TACIT_KERNEL GemmKernel(GemmArgs<uint16_t> g, End of_all) {
  using S = Shape<kSide>;
  constexpr uint32_t kThreads = S::kWarpsM * S::kWarpsN * kWarp, kStages = S::kStages;
  auto& ring = SharedAs<Ring<kSide, kTransA, kTransB>>();
  const uint32_t m0 = BlockIndex().y * kSide, n0 = BlockIndex().x * kSide;
  const SplitOfK split(g, BlockIndex().z);
  const uint32_t k_begin = split.begin, k_end = split.end;
  const uint32_t steps = (k_end - k_begin + kDepth - 1) / kDepth;
  const auto load = [&](uint32_t step) {
    if (step < steps) {
      const uint32_t k = k_begin + step * kDepth;
      auto& a = ring.a[step % kStages];
      auto& b = ring.b[step % kStages];
      if constexpr (kTransA) {
        LoadStage<kThreads>(a, g.a, k, k_end, m0, g.m);
      } else {
        LoadStage<kThreads>(a, g.a, m0, g.m, k, k_end);
      }
      if constexpr (kTransB) {
        LoadStage<kThreads>(b, g.b, n0, g.n, k, k_end);
      } else {
        LoadStage<kThreads>(b, g.b, k, k_end, n0, g.n);
      }
    }
    CommitCopies();
  };
  const uint32_t wm = WarpIndex() / S::kWarpsN * (16 * S::kRows);
  const uint32_t wn = WarpIndex() % S::kWarpsN * (16 * S::kColumns);
  // A warp whose part of the tile lies outside of c only loads.
  const bool at_work = m0 + wm < g.m && n0 + wn < g.n;
  float sum[S::kRows][2 * S::kColumns][4] = {};
  TACIT_UNROLL
  for (uint32_t step = 0; step + 1 < kStages; ++step) load(step);
  for (uint32_t step = 0; step < steps; ++step) {
    WaitCopies<kStages - 2>();
    SyncBlock();
    // Into the stage that all warps were done with before the barrier.
    load(step + kStages - 1);
    if (!at_work) continue;
    const auto& a = ring.a[step % kStages];
    const auto& b = ring.b[step % kStages];
    const uint32_t left = k_end - k_begin - step * kDepth;
    TACIT_UNROLL
    for (uint32_t k = 0; k < kDepth; k += kFragment) {
      if (k >= left) break;
      AddFragments<kTransA, kTransB, S::kRows, S::kColumns>(sum, a, b, wm, wn, k);
    }
  }
  WaitCopies<0>();
  if (!at_work) return;
  const End end = of_all.At(BlockIndex().z);
  const bool pairs = end.HasPairs();
  TACIT_UNROLL
  for (uint32_t i = 0; i < S::kRows; ++i) {
    TACIT_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t row = m0 + wm + 16 * i + LaneIndex() / 4 + 8 * half;
      const bool real = row < g.m;
      SquaresOf<End> squares;
      if (real)
        PutPairs<2 * S::kColumns>(
            end, pairs, row, n0 + wn + 2 * (LaneIndex() % 4), g.n,
            [&](uint32_t j) { return &sum[i][j][2 * half]; }, squares);
      PutSquares(end, real, row, (n0 + wn) / kSquaresColumns, squares);
    }
  }
}

template <uint32_t kSide, bool kTransA, bool kTransB, class End>
Status LaunchTiles(Stream& stream, const char* name, const GemmArgs<uint16_t>& args,
                   uint32_t splits, const End& end) {
  using S = Shape<kSide>;
  const uint32_t down = (args.m + kSide - 1) / kSide;
  TACIT_CHECK(down <= 65535, "a matrix of too many rows");
  return Launch(stream, name,
                {.grid = {(args.n + kSide - 1) / kSide, down, splits},
                 .block = {S::kWarpsM * S::kWarpsN * kWarp},
                 .shared_bytes = sizeof(Ring<kSide, kTransA, kTransB>)},
                GemmKernel<kSide, kTransA, kTransB, End>, args, end);
}

template <uint32_t kSide>
Status LaunchForm(Stream& stream, Form form_a, Form form_b, const GemmArgs<uint16_t>& args,
                  uint32_t splits) {
  const bool ta = form_a == Form::kTransposed, tb = form_b == Form::kTransposed;
  const SumsEnd end{args.c, args.beta};
  if (ta && tb) return LaunchTiles<kSide, true, true>(stream, "Gemm16", args, splits, end);
  if (ta) return LaunchTiles<kSide, true, false>(stream, "Gemm16", args, splits, end);
  if (tb) return LaunchTiles<kSide, false, true>(stream, "Gemm16", args, splits, end);
  return LaunchTiles<kSide, false, false>(stream, "Gemm16", args, splits, end);
}

void CheckFactors(const DeviceMatrix<const uint16_t>& a, const DeviceMatrix<const uint16_t>& b) {
  TACIT_CHECK(MayBeCopied(a) && MayBeCopied(b), "rows begin at multiples of 16 bytes");
}
// Says whether wgmma multiplies. It does not where there is nothing to add up.
bool ByWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan) {
  if (plan.way != GemmWay::kWgmma || args.k == 0) return false;
  TACIT_CHECK(OwnWay(stream.device().facts()) == GemmWay::kWgmma, "this device has no wgmma");
  return true;
}

// A product of a as it is with b, which ends in `end`.
template <bool kTransB, class End>
Status MultiplyTo(Stream& stream, const char* name, DeviceMatrix<const uint16_t> a,
                  DeviceMatrix<const uint16_t> b, uint32_t cols, const GemmPlan& plan,
                  const End& end) {
  TACIT_CHECK(plan.splits == 1, "a part of a product has no end but its sums");
  const auto args =
      MakeGemmArgs(Form::kAsIs, a, kTransB ? Form::kTransposed : Form::kAsIs, b, 0,
                   DeviceMatrix<float>(nullptr, a.rows, cols, cols), plan, {}, kDepth);
  CheckFactors(a, b);
  if (args.m == 0 || args.n == 0) return {};
  if (ByWgmma(stream, args, plan)) return LaunchWgmma(stream, args, plan, end);
  return plan.tile == 64 ? LaunchTiles<64, false, kTransB>(stream, name, args, 1, end)
                         : LaunchTiles<128, false, kTransB>(stream, name, args, 1, end);
}

// The same, with the squares of its rows where they are asked for.
template <bool kTransB, class End>
Status MultiplyTo(Stream& stream, const char* name, DeviceMatrix<const uint16_t> a,
                  DeviceMatrix<const uint16_t> b, uint32_t cols, const GemmPlan& plan,
                  const End& end, RowSquares squares) {
  if (squares.data == nullptr) return MultiplyTo<kTransB>(stream, name, a, b, cols, plan, end);
  TACIT_CHECK(squares.rows == SquaresParts(plan, cols) && squares.cols == a.rows && a.cols > 0,
              "squares of other rows");
  return MultiplyTo<kTransB>(stream, name, a, b, cols, plan, Squared<End>{end, squares});
}

}  // namespace

uint32_t SquaresParts(const GemmPlan& plan, uint32_t n) {
  const uint32_t columns = plan.way == GemmWay::kWgmma ? plan.tile : kSquaresColumns;
  return (n + columns - 1) / columns;
}

Status Gemm16(Stream& stream, Form form_a, DeviceMatrix<const uint16_t> a, Form form_b,
              DeviceMatrix<const uint16_t> b, float beta, DeviceMatrix<float> c,
              const GemmPlan& plan, DeviceSpan<float> work) {
  const auto args = MakeGemmArgs(form_a, a, form_b, b, beta, c, plan, work, kDepth);
  CheckFactors(a, b);
  if (args.m == 0 || args.n == 0) return {};
  if (ByWgmma(stream, args, plan)) {
    TACIT_RETURN_IF_ERROR(LaunchWgmma(stream, form_a, form_b, args, plan));
  } else {
    TACIT_RETURN_IF_ERROR(plan.tile == 64
                              ? LaunchForm<64>(stream, form_a, form_b, args, plan.splits)
                              : LaunchForm<128>(stream, form_a, form_b, args, plan.splits));
  }
  return plan.splits == 1 ? Status() : AddSplits(stream, plan.splits, work, beta, c);
}

Status Gemm16Pieces(Stream& stream, DeviceMatrix<const uint16_t> a, DeviceMatrix<const uint16_t> b,
                    const GemmPieces& pieces, DeviceSpan<float> work) {
  const auto args = MakePieceArgs(a, b, pieces, work);
  CheckFactors(a, b);
  if (args.m == 0 || args.n == 0 || pieces.count == 0) return {};
  const SumsEnd end{args.c, 0};
  return TileOfPieces(stream.device().facts(), args.m, args.n, pieces.count) == 64
             ? LaunchTiles<64, true, false>(stream, "Gemm16Pieces", args, pieces.count, end)
             : LaunchTiles<128, true, false>(stream, "Gemm16Pieces", args, pieces.count, end);
}

Status Gemm16Activate(Stream& stream, DeviceMatrix<const uint16_t> a,
                      DeviceMatrix<const uint16_t> b, DeviceSpan<const float> bias,
                      DeviceMatrix<uint16_t> out, const GemmPlan& plan, RowSquares squares) {
  TACIT_CHECK(out.rows == a.rows && (out.cols == b.cols || out.cols == b.cols + 1),
              "shapes differ");
  TACIT_CHECK(bias.size == b.cols && out.stride >= out.cols, "one bias per column");
  return MultiplyTo<false>(stream, "Gemm16Activate", a, b, b.cols, plan,
                           ActivateEnd{bias.data, b.cols, out}, squares);
}

Status Gemm16AddBias(Stream& stream, DeviceMatrix<const uint16_t> a, DeviceMatrix<const uint16_t> b,
                     DeviceSpan<const float> bias, DeviceMatrix<float> out, const GemmPlan& plan) {
  TACIT_CHECK(out.rows == a.rows && out.cols == b.cols, "shapes differ");
  TACIT_CHECK(bias.size == b.cols && out.stride >= out.cols, "one bias per column");
  return MultiplyTo<false>(stream, "Gemm16AddBias", a, b, b.cols, plan,
                           AddBiasEnd{bias.data, b.cols, out});
}

Status Gemm16AddBias(Stream& stream, DeviceMatrix<const uint16_t> a, DeviceMatrix<const uint16_t> b,
                     DeviceSpan<const float> bias, DeviceMatrix<uint16_t> out,
                     const GemmPlan& plan) {
  TACIT_CHECK(out.rows == a.rows && out.cols == b.cols, "shapes differ");
  TACIT_CHECK(bias.size == b.cols && out.stride >= out.cols, "one bias per column");
  return MultiplyTo<false>(stream, "Gemm16AddBiasRound", a, b, b.cols, plan,
                           AddBiasRoundEnd{bias.data, b.cols, out});
}

Status Gemm16Round(Stream& stream, DeviceMatrix<const uint16_t> a, DeviceMatrix<const uint16_t> b,
                   DeviceMatrix<uint16_t> out, const GemmPlan& plan) {
  TACIT_CHECK(out.rows == a.rows && out.cols == b.rows && out.stride >= out.cols, "shapes differ");
  return MultiplyTo<true>(stream, "Gemm16Round", a, b, b.rows, plan, RoundEnd{out});
}

Status Gemm16ReluBackward(Stream& stream, DeviceMatrix<const uint16_t> a,
                          DeviceMatrix<const uint16_t> b, DeviceMatrix<const uint16_t> activation,
                          DeviceMatrix<uint16_t> out, const GemmPlan& plan, RowSquares squares) {
  TACIT_CHECK(out.rows == a.rows && out.cols == b.rows && activation.rows == out.rows &&
                  activation.cols == out.cols,
              "shapes differ");
  TACIT_CHECK(out.stride >= out.cols && activation.stride >= activation.cols, "rows overlap");
  return MultiplyTo<true>(stream, "Gemm16ReluBackward", a, b, b.rows, plan,
                          MaskEnd{activation, out}, squares);
}

}  // namespace tacit::cuda
