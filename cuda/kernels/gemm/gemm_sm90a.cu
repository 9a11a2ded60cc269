// Products of bf16 matrices with f32 sums, by wgmma, whose factors the copy engine brings: for
// devices of compute capability 9.0 and no other.
//   bytes:      2 (m k ceil(n / columns) + k n ceil(m / 128)) read, 4 m n written, or 2 m n by an
//               end that rounds (and 2 m n read by the mask); tiles that several blocks read come
//               from the second-level cache
//   operations: 2 m n k
// A block computes tiles of 128 x kColumns numbers of c, one after the other: there are as many
// blocks as fit on the device, or fewer. Two warpgroups multiply, 64 rows each; one thread of a
// ninth warp brings stages of 64 of k into a ring. A barrier tells that a stage is full, another
// that all warps are done with it, which they are one stage later: a stage's products run while the
// next one's are put into the queue. The ring goes on from tile to tile, so that a tile's first
// stages come while the one before is written. Factors lie in shared memory as they lie in device
// memory, and what lies outside of them comes as zeros. With 128 columns or fewer a multiprocessor
// has two blocks, so that one writes its sums while the other multiplies: at k = 598 writing takes
// as long as multiplying.
//
// A number's products are added in one order, in every block and tile.
//
// Registers (-Xptxas -v, nvcc 13.0), 64 / 128 / 256 columns: see README.md; no spills. ptxas must
// not say that it injects or serializes anything (C7519, C7520): Anew, KeepBehind, Opaque and
// SyncWarp are there for that. Measured on an H200 with a tile a block, whose first stages and
// writes took as long as its products: 519 TFLOP/s at 8,192^3; 181, 185 and 245 for the three
// products of a layer of 598 x 598 and 16,384 rows. Forecast with tiles one after the other: 33 us
// in place of 65 for one of those, 350 TFLOP/s.
#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/gemm/gemm_ends.h"
#include "cuda/kernels/gemm/gemm_sm90a.h"
#include "cuda/kernels/gemm/wgmma.h"

namespace tacit::cuda {
namespace {

using sm90a::Barrier;

constexpr uint32_t kRows = 128;           // of a block's tile
constexpr uint32_t kGroupRows = 64;       // of a warpgroup's
constexpr uint32_t kWide = 64;            // numbers in 128 bytes, a row of a tile in shared memory
constexpr uint32_t kDepth = kWgmmaDepth;  // of k in a stage
constexpr uint32_t kStep = 16;            // of k in one instruction
constexpr uint32_t kMultiplying = 256, kThreads = kMultiplying + kWarp;
constexpr uint32_t kSwizzleBytes = 1024;  // tiles begin at multiples of this

constexpr uint32_t StagesOf(uint32_t columns) {
  return columns == 256 ? 4 : columns == 128 ? 3 : 4;
}
constexpr uint32_t BlocksEach(uint32_t columns) { return columns == 256 ? 1 : 2; }

// A factor's part of a stage: kSide of its rows (or columns, for b) and kDepth of k. Along k it is
// one tile; across, one tile for each 64 rows.
template <uint32_t kSide, bool kAcross>
struct alignas(kSwizzleBytes) Part {
  static constexpr uint32_t kTileRows = kAcross ? kDepth : kSide;
  static constexpr uint32_t kTiles = kAcross ? kSide / kWide : 1;
  static constexpr uint32_t kTileBytes = 2 * kTileRows * kWide;
  static constexpr uint32_t kBytes = kTiles * kTileBytes;
  uint16_t number[kTiles][kTileRows][kWide];
};

template <uint32_t kColumns, bool kAcrossA, bool kAcrossB>
struct TileRing {
  using A = Part<kRows, kAcrossA>;
  using B = Part<kColumns, kAcrossB>;
  static constexpr uint32_t kStages = StagesOf(kColumns);
  A a[kStages];
  B b[kStages];
  Barrier full[kStages], free[kStages];
};

// Brings a part whose first row is `first`, from `k` on.
template <bool kAcross, class P>
TACIT_IN_KERNEL void Bring(P& part, const TensorMap& map, uint32_t first, uint32_t k,
                           Barrier& barrier) {
  if constexpr (kAcross) {
    TACIT_UNROLL
    for (uint32_t t = 0; t < P::kTiles; ++t)
      sm90a::BringTile(part.number[t], map, k, first + t * kWide, barrier);
  } else {
    sm90a::BringTile(part.number[0], map, first, k, barrier);
  }
}

// Describes the part from its row `first`, a multiple of 64, and from `k` on.
template <bool kAcross, class P>
TACIT_IN_KERNEL uint64_t DescribePart(const P& part, uint32_t first, uint32_t k) {
  if constexpr (kAcross) return sm90a::Describe(part.number[first / kWide][k], P::kTileBytes);
  return sm90a::Describe(&part.number[0][first][k], 16);
}

// One tile of the product, or of a split's part of it: tiles of a split lie one behind the other,
// row by row.
struct TileWork {
  uint32_t split, m0, n0;  // its first row and column
  uint32_t k_begin, depth;

  TACIT_DEVICE TileWork(const GemmArgs<uint16_t>& g, uint32_t columns, uint32_t tile) {
    const uint32_t across = (g.n + columns - 1) / columns, down = (g.m + kRows - 1) / kRows;
    const uint32_t row = tile / across;
    split = row / down;
    m0 = row % down * kRows;
    n0 = tile % across * columns;
    k_begin = split * g.k_each;
    const uint32_t left = k_begin < g.k ? g.k - k_begin : 0;
    depth = left < g.k_each ? left : g.k_each;
  }
  // A split behind the end of k has a stage of zeros, as all of it lies outside of the factors.
  TACIT_DEVICE uint32_t Steps() const { return depth == 0 ? 1 : (depth + kDepth - 1) / kDepth; }
};

template <uint32_t kColumns, bool kAcrossA, bool kAcrossB, class End>
TACIT_KERNEL_OF(kThreads, BlocksEach(kColumns))
WgmmaKernel(const GemmArgs<uint16_t> g, const End of_all, uint32_t tiles,
            const TACIT_IN_PLACE TensorMap map_a, const TACIT_IN_PLACE TensorMap map_b) {
  using Ring = TileRing<kColumns, kAcrossA, kAcrossB>;
  using P = sm90a::Product<kColumns, kAcrossA, kAcrossB>;
  constexpr uint32_t kStages = Ring::kStages;
  // The runtime promises less than what the swizzle wants.
  unsigned char* const memory = &SharedAs<unsigned char>();
  const uint32_t skipped = -sm90a::SharedAddress(memory) % kSwizzleBytes;
  auto& ring = *reinterpret_cast<Ring*>(memory + skipped);
  // Uses of stages, counted from the block's first on, over all tiles.
  uint32_t use = 0;

  if (ThreadIndex().x == 0) {
    TACIT_UNROLL
    for (uint32_t s = 0; s < kStages; ++s) {
      sm90a::InitBarrier(ring.full[s], 1);
      sm90a::InitBarrier(ring.free[s], kMultiplying / kWarp);
    }
    sm90a::ShowBarriers();
  }
  SyncBlock();

  if (WarpIndex() == kMultiplying / kWarp) {
    if (LaneIndex() != 0) return;
    sm90a::FetchMap(map_a);
    sm90a::FetchMap(map_b);
    for (uint32_t tile = BlockIndex().x; tile < tiles; tile += GridSize().x) {
      const TileWork work(g, kColumns, tile);
      const uint32_t steps = work.Steps();
      for (uint32_t step = 0; step < steps; ++step, ++use) {
        const uint32_t s = use % kStages, round = use / kStages;
        const uint32_t k = work.k_begin + step * kDepth;
        if (round > 0) sm90a::WaitBarrier(ring.free[s], (round - 1) % 2);
        sm90a::ArriveExpecting(ring.full[s], Ring::A::kBytes + Ring::B::kBytes);
        Bring<kAcrossA>(ring.a[s], map_a, work.m0, k, ring.full[s]);
        Bring<kAcrossB>(ring.b[s], map_b, work.n0, k, ring.full[s]);
      }
    }
    return;
  }

  const uint32_t group = WarpIndex() / 4, from = group * kGroupRows;
  const auto release = [&](uint32_t of_use) {
    if (LaneIndex() == 0) sm90a::Arrive(ring.free[of_use % kStages]);
  };
  for (uint32_t tile = BlockIndex().x; tile < tiles; tile += GridSize().x) {
    const TileWork work(g, kColumns, tile);
    const uint32_t steps = work.Steps();
    // The first product writes the sums. Were they zeros before, ptxas would run one product at a
    // time (C7515).
    float sum[kColumns / 2];
    sm90a::Anew(sum);
    for (uint32_t step = 0; step < steps; ++step, ++use) {
      const uint32_t s = use % kStages;
      sm90a::WaitBarrier(ring.full[s], use / kStages % 2);
      sm90a::FenceProducts();
      TACIT_UNROLL
      for (uint32_t k = 0; k < kDepth; k += kStep)
        P::Add(sum, DescribePart<kAcrossA>(ring.a[s], from, k),
               DescribePart<kAcrossB>(ring.b[s], 0, k), step > 0 || k > 0);
      sm90a::CommitProducts();
      sm90a::WaitProducts<1>();
      if (step > 0) release(use - 1);
    }
    sm90a::WaitProducts<0>();
    sm90a::KeepBehind(sum);
    // The next tile's stages come while this one is written.
    release(use - 1);

    const End end = of_all.At(work.split);
    const bool pairs = Opaque(end.HasPairs());
    TACIT_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t row = work.m0 + from + WarpIndex() % 4 * 16 + LaneIndex() / 4 + 8 * half;
      const bool real = row < g.m;
      // Pairs that end side by side. Squares want the registers of two.
      constexpr uint32_t kTogether = kHasSquares<End> ? 2 : 4;
      SquaresOf<End> squares;
      if (real) {
        TACIT_UNROLL
        for (uint32_t j = 0; j < kColumns / 8; j += kTogether)
          PutPairs<kTogether>(
              end, pairs, row, work.n0 + 8 * j + LaneIndex() % 4 * 2, g.n,
              [&](uint32_t i) { return &sum[4 * (j + i) + 2 * half]; }, squares);
      }
      PutSquares(end, real, row, work.n0 / kColumns, squares);
    }
    // Products want all lanes of a warp together, and rows behind the last one part them.
    SyncWarp();
  }
}

template <class P>
Result<TensorMap> MapOf(Stream& stream, const DeviceMatrix<const uint16_t>& x) {
  return MakeTensorMap(stream.device(), {.data = x.data,
                                         .rows = x.rows,
                                         .cols = x.cols,
                                         .stride = x.stride,
                                         .tile_rows = P::kTileRows,
                                         .tile_cols = kWide});
}

template <uint32_t kColumns, bool kAcrossA, bool kAcrossB, class End>
Status LaunchTiles(Stream& stream, const char* name, const GemmArgs<uint16_t>& args,
                   uint32_t splits, const End& end) {
  using Ring = TileRing<kColumns, kAcrossA, kAcrossB>;
  const uint64_t tiles =
      uint64_t{splits} * ((args.m + kRows - 1) / kRows) * ((args.n + kColumns - 1) / kColumns);
  TACIT_CHECK(tiles < uint64_t{1} << 31, "a matrix of too many tiles");
  const auto blocks = static_cast<uint64_t>(std::max(1, stream.device().facts().multiprocessors)) *
                      BlocksEach(kColumns);
  TACIT_ASSIGN(const TensorMap a, MapOf<typename Ring::A>(stream, args.a));
  TACIT_ASSIGN(const TensorMap b, MapOf<typename Ring::B>(stream, args.b));
  return Launch(stream, name,
                {.grid = {static_cast<uint32_t>(std::min(tiles, blocks))},
                 .block = {kThreads},
                 .shared_bytes = sizeof(Ring) + kSwizzleBytes},
                WgmmaKernel<kColumns, kAcrossA, kAcrossB, End>, args, end,
                static_cast<uint32_t>(tiles), a, b);
}

// A factor lies across k where its rows in memory are of k: a transposed a, and b as it is.
template <uint32_t kColumns>
Status LaunchForm(Stream& stream, Form form_a, Form form_b, const GemmArgs<uint16_t>& args,
                  uint32_t splits) {
  constexpr const char* kName = "GemmWgmma";
  const bool across_a = form_a == Form::kTransposed, across_b = form_b == Form::kAsIs;
  const SumsEnd end{args.c, args.beta};
  if (across_a && across_b)
    return LaunchTiles<kColumns, true, true>(stream, kName, args, splits, end);
  if (across_a) return LaunchTiles<kColumns, true, false>(stream, kName, args, splits, end);
  if (across_b) return LaunchTiles<kColumns, false, true>(stream, kName, args, splits, end);
  return LaunchTiles<kColumns, false, false>(stream, kName, args, splits, end);
}

template <bool kAcrossB, class End>
Status LaunchEnd(Stream& stream, const char* name, const GemmArgs<uint16_t>& args,
                 const GemmPlan& plan, const End& end) {
  switch (plan.tile) {
    case 64:
      return LaunchTiles<64, false, kAcrossB>(stream, name, args, 1, end);
    case 128:
      return LaunchTiles<128, false, kAcrossB>(stream, name, args, 1, end);
    default:
      return LaunchTiles<256, false, kAcrossB>(stream, name, args, 1, end);
  }
}

}  // namespace

bool HasWgmma() { return true; }

Status LaunchWgmma(Stream& stream, Form form_a, Form form_b, const GemmArgs<uint16_t>& args,
                   const GemmPlan& plan) {
  switch (plan.tile) {
    case 64:
      return LaunchForm<64>(stream, form_a, form_b, args, plan.splits);
    case 128:
      return LaunchForm<128>(stream, form_a, form_b, args, plan.splits);
    default:
      return LaunchForm<256>(stream, form_a, form_b, args, plan.splits);
  }
}

Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const ActivateEnd& end) {
  return LaunchEnd<true>(stream, "GemmWgmmaActivate", args, plan, end);
}
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const Squared<ActivateEnd>& end) {
  return LaunchEnd<true>(stream, "GemmWgmmaActivate", args, plan, end);
}
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const AddBiasEnd& end) {
  return LaunchEnd<true>(stream, "GemmWgmmaAddBias", args, plan, end);
}
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const AddBiasRoundEnd& end) {
  return LaunchEnd<true>(stream, "GemmWgmmaAddBiasRound", args, plan, end);
}
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const RoundEnd& end) {
  return LaunchEnd<false>(stream, "GemmWgmmaRound", args, plan, end);
}
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const MaskEnd& end) {
  return LaunchEnd<false>(stream, "GemmWgmmaReluBackward", args, plan, end);
}
Status LaunchWgmma(Stream& stream, const GemmArgs<uint16_t>& args, const GemmPlan& plan,
                   const Squared<MaskEnd>& end) {
  return LaunchEnd<false>(stream, "GemmWgmmaReluBackward", args, plan, end);
}

}  // namespace tacit::cuda
