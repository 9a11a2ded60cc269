// Attention on tensor cores (mma.sync m16n8k16): a block a crop, head and tile of 64 queries, or of
// keys; a warp 16 of them. Tiles are rounded to bf16 on their way into shared memory, and the
// causal mask leaves out those above the diagonal. Logits and shares are not in memory: a query
// keeps its largest logit and the sum of its exponentials, and each pass forms its shares again.
// Only where logits are corrected are shares stored, for the pass of variances needs them as well,
// and the backward passes read them.
// Forward, and backward for queries, keys go by twice: shares are rounded as factors once their sum
// is known, as the CPU does, so there is nothing to scale again. The second time they go by
// backwards, so that the last tile need not be brought again. Gradients of keys and values are a
// pass of their own, by tiles of keys; nothing is added in memory.
//   bytes:      per crop of n rows and head of width d, t = ceil(n / 64) tiles of rows, T = t (t +
//               1) / 2 pairs of them: forward 4 d (n + 64 (3 T - t)) in and 4 d n out, backward for
//               queries 4 d (2 n + 64 (4 T - 2 t)) in and 4 d n out, for keys 4 d (2 n + 128 T) in
//               and 8 d n out, all but the first reading of a row out of the second-level cache;
//               corrected 8 d n and 64 8 d T more in, and 2 n^2 of shares out, and in four times
//   operations: forward 3, for queries 5, for keys 4 products of 2 d operations a pair of a query
//               and a key, n^2 / 2 pairs and those of half a step at the diagonal; 2, 2 and 1
//               exponentials a pair, 20 operations each
// From matrices of bf16 half of the bytes that are of d numbers, in and out: the same factors, as
// they are.
// 512 crops of 200 rows, a head of 64, 12.8 M pairs: 270, 350 and 270 MB, 4.9, 8.2 and 6.6 GFLOP.
// That is .05, .07 and .05 ms of the second-level cache's 5.5 TB/s, beside .05, .08 and .07 at 100
// TFLOP/s, which do not overlap well within a block. Forecast for an H200: .12, .17 and .14 ms,
// where a warp a query took 3.1, 3.1 and 2.5. Of factors: 135, 175 and 135 MB, .10, .14 and .12 ms.
// Registers: README.md.
#include <type_traits>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/gemm/mma_tiles.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/vector.h"
#include "cuda/kernels/sequence/attention_load.h"
#include "cuda/kernels/sequence/attention_parts.h"
#include "cuda/kernels/sequence/attention_tiles.h"
#include "ops/exp.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kWarps = 4, kThreads = kWarps * kWarp;
static_assert(kThreads == kTileThreads);
constexpr uint32_t kWarpRows = 16;  // of a tile
constexpr uint32_t kStep = 32;      // columns of logits that a warp forms at a time
constexpr uint32_t kParts = kStep / 8, kFactors = kStep / kFragment;
constexpr float kLeast = -3.4e38f;

static_assert(kWarps * kWarpRows == kTile && kTile % kStep == 0);

// Two tiles of a head of up to kWidth numbers, and numbers of their rows.
template <uint32_t kWidth>
struct alignas(16) Tiles {
  Stage<kTile, kWidth> x, y;
  float most[kTile], inverse[kTile], mean[kTile];
};
// The same, with a tile of keys' variances.
template <uint32_t kWidth>
struct CorrectedTiles : Tiles<kWidth> {
  Stage<kTile, kWidth> variance;
};
template <uint32_t kWidth, bool kCorrected>
using TilesOfPass = std::conditional_t<kCorrected, CorrectedTiles<kWidth>, Tiles<kWidth>>;

// The warp's rows of a tile, as left factors.
template <uint32_t kWidth>
struct Rows {
  uint32_t part[kWidth / kFragment][4];

  TACIT_IN_KERNEL void Take(const Stage<kTile, kWidth>& tile) {
    TACIT_UNROLL
    for (uint32_t k = 0; k < kWidth / kFragment; ++k)
      LoadA<false>(part[k], tile, kWarpRows * WarpIndex(), kFragment * k);
  }
};

// Products of the warp's rows with kStep rows of a tile: 16 x 8 numbers a part, four a lane.
struct Products {
  float number[kParts][4] = {};

  template <uint32_t kWidth>
  TACIT_IN_KERNEL void Form(const Rows<kWidth>& rows, const Stage<kTile, kWidth>& tile,
                            uint32_t first) {
    ForAll([](float& x, uint32_t, uint32_t) { x = 0; });
    TACIT_UNROLL
    for (uint32_t k = 0; k < kWidth / kFragment; ++k) {
      TACIT_UNROLL
      for (uint32_t j = 0; j < kParts; j += 2) {
        uint32_t four[4];
        LoadB<true>(four, tile, kFragment * k, first + 8 * j);
        const uint32_t one[2] = {four[0], four[1]}, other[2] = {four[2], four[3]};
        Mma16816(number[j], rows.part[k], one);
        Mma16816(number[j + 1], rows.part[k], other);
      }
    }
  }
  // Calls body(number, j, e) for all of the lane's.
  template <class Body>
  TACIT_IN_KERNEL void ForAll(const Body& body) {
    TACIT_UNROLL
    for (uint32_t j = 0; j < kParts; ++j) TACIT_UNROLL
    for (uint32_t e = 0; e < 4; ++e) body(number[j][e], j, e);
  }
};
// A number's row among the warp's, and its column.
TACIT_IN_KERNEL uint32_t RowOf(uint32_t e) { return LaneIndex() / 4 + 8 * (e / 2); }
TACIT_IN_KERNEL uint32_t ColumnOf(uint32_t j, uint32_t e) {
  return 8 * j + 2 * (LaneIndex() % 4) + e % 2;
}

// Sums of as many columns as a head has, for the warp's rows.
template <uint32_t kWidth>
struct Sums {
  float number[kWidth / 8][4] = {};

  // Adds left, which lies as products do, times kStep rows of a tile.
  TACIT_IN_KERNEL void Add(const Products& left, const Stage<kTile, kWidth>& tile, uint32_t first) {
    TACIT_UNROLL
    for (uint32_t i = 0; i < kFactors; ++i) {
      const auto& one = left.number[2 * i];
      const auto& other = left.number[2 * i + 1];
      const uint32_t a[4] = {Pair(one[0], one[1]), Pair(one[2], one[3]), Pair(other[0], other[1]),
                             Pair(other[2], other[3])};
      TACIT_UNROLL
      for (uint32_t j = 0; j < kWidth / 8; j += 2) {
        uint32_t four[4];
        LoadB<false>(four, tile, first + kFragment * i, 8 * j);
        const uint32_t b[2] = {four[0], four[1]}, c[2] = {four[2], four[3]};
        Mma16816(number[j], a, b);
        Mma16816(number[j + 1], a, c);
      }
    }
  }
  // Writes them as columns from `column` on of a crop's rows from `row` on.
  template <class X>
  TACIT_IN_KERNEL void Write(const Head& head, uint32_t row, uint32_t column,
                             const DeviceMatrix<X>& to) const {
    TACIT_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t r = row + RowOf(2 * half);
      if (r >= head.rows) continue;
      X* const numbers = to.Row(head.first + r) + column;
      TACIT_UNROLL
      for (uint32_t j = 0; j < kWidth / 8; ++j) {
        const uint32_t c = ColumnOf(j, 0);
        Vector<X, 2> two;
        Narrow(number[j][2 * half], &two.x[0]);
        Narrow(number[j][2 * half + 1], &two.x[1]);
        if (c < head.width) StoreVector(two, head.width - c, numbers + c);
      }
    }
  }

 private:
  TACIT_IN_KERNEL static uint32_t Pair(float low, float high) {
    uint16_t halves[2];
    Narrow(low, &halves[0]);
    Narrow(high, &halves[1]);
    return halves[0] | uint32_t{halves[1]} << 16;
  }
};

TACIT_IN_KERNEL float Larger(float a, float b) { return a < b ? b : a; }

// The largest logit of a lane's two rows, and the sum of exponentials of its distance to each.
struct Softmax {
  float most[2] = {kLeast, kLeast}, sum[2] = {0, 0};

  // Adds logits of queries from `query` on and keys from `key` on.
  TACIT_IN_KERNEL void Add(const Products& logits, uint32_t query, uint32_t key) {
    TACIT_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t q = query + RowOf(2 * half);
      float next = most[half], added = 0;
      TACIT_UNROLL
      for (uint32_t j = 0; j < kParts; ++j) TACIT_UNROLL
      for (uint32_t e = 2 * half; e < 2 * half + 2; ++e)
        if (IsSeen(q, key + ColumnOf(j, e))) next = Larger(next, logits.number[j][e]);
      TACIT_UNROLL
      for (uint32_t j = 0; j < kParts; ++j) TACIT_UNROLL
      for (uint32_t e = 2 * half; e < 2 * half + 2; ++e)
        if (IsSeen(q, key + ColumnOf(j, e))) added += ops::Exp(logits.number[j][e] - next);
      sum[half] = sum[half] * ops::Exp(most[half] - next) + added;
      most[half] = next;
    }
  }
  // Joins the four lanes of a row. A lane that has seen no key has a sum of zero.
  TACIT_IN_KERNEL void Join() {
    TACIT_UNROLL
    for (uint32_t half = 0; half < 2; ++half)
      for (uint32_t bits = 1; bits < 4; bits *= 2) {
        const float other = ShuffleXor(most[half], bits), its = ShuffleXor(sum[half], bits);
        const float next = Larger(most[half], other);
        sum[half] = sum[half] * ops::Exp(most[half] - next) + its * ops::Exp(other - next);
        most[half] = next;
      }
  }
};

// A block's tile of queries, and the warp's 16 of them.
struct Queries {
  uint32_t tile, first, end;  // the end of keys that one of the warp's sees

  TACIT_IN_KERNEL Queries(const Head& head, uint32_t which)
      : tile(which), first(which * kTile + WarpIndex() * kWarpRows) {
    const uint32_t behind = first + kWarpRows;
    end = first >= head.rows ? 0 : behind < head.rows ? behind : head.rows;
  }
  // Calls body(step) for the steps of a tile of keys that one of the warp's queries sees.
  template <class Body>
  TACIT_IN_KERNEL void ForSteps(uint32_t key_tile, const Body& body) const {
    for (uint32_t step = 0; step < kTile && key_tile * kTile + step < end; step += kStep)
      body(step);
  }
};

// Logits of a block's queries, less their corrections where kCorrected.
template <uint32_t kWidth, bool kCorrected, class X>
struct Logits {
  const DeviceMatrix<const X>& qkv;
  const AttentionCorrection& correction;
  const Head& head;
  const Queries& queries;
  float scale;
  Rows<kWidth> query = {}, square = {};

  // Brings the queries. Shared memory must be free; it is free behind ReleaseTiles.
  template <class T>
  TACIT_IN_KERNEL void Begin(T& tiles) {
    LoadTile(qkv, head, head.column, queries.tile * kTile, tiles.x);
    if constexpr (kCorrected)
      LoadTile(qkv, head, head.column, queries.tile * kTile, tiles.variance, Squared());
    AwaitTiles();
    query.Take(tiles.x);
    if constexpr (kCorrected) square.Take(tiles.variance);
  }
  template <class T>
  TACIT_IN_KERNEL void LoadKeys(uint32_t key_tile, T& tiles) const {
    LoadTile(qkv, head, head.all + head.column, key_tile * kTile, tiles.x);
    if constexpr (kCorrected)
      LoadTile(correction.key_variance, head, head.column, key_tile * kTile, tiles.variance);
  }
  template <class T>
  TACIT_IN_KERNEL void Form(const T& tiles, uint32_t step, Products& logits) const {
    logits.Form(query, tiles.x, step);
    logits.ForAll([&](float& x, uint32_t, uint32_t) { x = scale * x; });
    if constexpr (kCorrected) {
      Products penalty;
      penalty.Form(square, tiles.variance, step);
      logits.ForAll([&](float& x, uint32_t j, uint32_t e) {
        const float taken = correction.factor * penalty.number[j][e];
        x -= taken < correction.most ? taken : correction.most;
      });
    }
  }
};

// A query keeps two numbers, or its shares where logits are corrected.
template <uint32_t kWidth, bool kCorrected, class X>
TACIT_KERNEL_OF(kThreads, kCorrected ? 3 : 4)
AttendTilesKernel(AttentionShape shape, DeviceMatrix<const X> qkv, AttentionCorrection correction,
                  DeviceMatrix<float> kept, DeviceMatrix<X> out) {
  auto& tiles = SharedAs<TilesOfPass<kWidth, kCorrected>>();
  const Head head = HeadOf(shape, qkv.rows, out.cols);
  if (BlockIndex().z >= TilesOf(head.rows)) return;
  // Those with the most keys begin.
  const Queries queries(head, TilesOf(head.rows) - 1 - BlockIndex().z);
  const uint32_t key_tiles = EndOfKeyTiles(queries.tile);
  Logits<kWidth, kCorrected, X> form{qkv, correction, head, queries,
                                     1 / Sqrt(static_cast<float>(head.width))};
  form.Begin(tiles);
  Products logits;
  Softmax softmax;
  for (uint32_t t = 0; t < key_tiles; ++t) {
    ReleaseTiles();
    form.LoadKeys(t, tiles);
    AwaitTiles();
    queries.ForSteps(t, [&](uint32_t step) {
      form.Form(tiles, step, logits);
      softmax.Add(logits, queries.first, t * kTile + step);
    });
  }
  softmax.Join();
  float inverse[2];
  TACIT_UNROLL
  for (uint32_t half = 0; half < 2; ++half) {
    inverse[half] = 1 / softmax.sum[half];
    const uint32_t q = queries.first + RowOf(2 * half);
    if (kCorrected || q >= head.rows || LaneIndex() % 4 != 0) continue;
    float* const to = kept.Row(head.shares + q);
    to[0] = softmax.most[half];
    to[1] = inverse[half];
  }
  Sums<kWidth> values;
  for (uint32_t t = key_tiles; t-- > 0;) {
    ReleaseTiles();
    if (t + 1 < key_tiles) form.LoadKeys(t, tiles);
    LoadTile(qkv, head, 2 * head.all + head.column, t * kTile, tiles.y);
    AwaitTiles();
    queries.ForSteps(t, [&](uint32_t step) {
      form.Form(tiles, step, logits);
      logits.ForAll([&](float& x, uint32_t j, uint32_t e) {
        const uint32_t q = queries.first + RowOf(e), k = t * kTile + step + ColumnOf(j, e);
        const bool seen = IsSeen(q, k);
        x = seen ? ops::Exp(x - softmax.most[e / 2]) * inverse[e / 2] : 0.0f;
        if (kCorrected && seen && q < head.rows) kept.Row(head.shares + q)[k] = x;
      });
      values.Add(logits, tiles.y, step);
    });
  }
  values.Write(head, queries.first, head.column, out);
}

// The share of a query in a key that is stored.
TACIT_IN_KERNEL float StoredShare(const DeviceMatrix<const float>& shares, const Head& head,
                                  uint32_t query, uint32_t key) {
  return query < head.rows && IsSeen(query, key) ? shares.Row(head.shares + query)[key] : 0.0f;
}

// sum share^2 v, from shares that are stored.
template <uint32_t kWidth>
TACIT_KERNEL_OF(kThreads, 4)
VarianceTilesKernel(AttentionShape shape, DeviceMatrix<const float> shares,
                    DeviceMatrix<const float> value_variance, DeviceMatrix<float> out) {
  auto& tiles = SharedAs<Tiles<kWidth>>();
  const Head head = HeadOf(shape, out.rows, out.cols);
  if (BlockIndex().z >= TilesOf(head.rows)) return;
  const Queries queries(head, TilesOf(head.rows) - 1 - BlockIndex().z);
  Products squares;
  Sums<kWidth> variances;
  for (uint32_t t = 0; t < EndOfKeyTiles(queries.tile); ++t) {
    ReleaseTiles();
    LoadTile(value_variance, head, head.column, t * kTile, tiles.x);
    AwaitTiles();
    queries.ForSteps(t, [&](uint32_t step) {
      squares.ForAll([&](float& x, uint32_t j, uint32_t e) {
        const float share =
            StoredShare(shares, head, queries.first + RowOf(e), t * kTile + step + ColumnOf(j, e));
        x = share * share;
      });
      variances.Add(squares, tiles.x, step);
    });
  }
  variances.Write(head, queries.first, head.column, out);
}

// Means of gradients of shares, into `work`, and gradients of queries. kStored: `kept` has shares.
template <uint32_t kWidth, bool kStored, class X>
TACIT_KERNEL_OF(kThreads, 3)
QueryTilesKernel(AttentionShape shape, DeviceMatrix<const X> qkv, DeviceMatrix<const float> kept,
                 DeviceMatrix<const X> grad, DeviceMatrix<float> work, DeviceMatrix<X> qkv_grad) {
  auto& tiles = SharedAs<Tiles<kWidth>>();
  const Head head = HeadOf(shape, qkv.rows, grad.cols);
  if (BlockIndex().z >= TilesOf(head.rows)) return;
  const Queries queries(head, TilesOf(head.rows) - 1 - BlockIndex().z);
  const uint32_t key_tiles = EndOfKeyTiles(queries.tile);
  const float scale = 1 / Sqrt(static_cast<float>(head.width));
  Rows<kWidth> query, of_out;
  LoadTile(qkv, head, head.column, queries.tile * kTile, tiles.x);
  LoadTile(grad, head, head.column, queries.tile * kTile, tiles.y);
  float most[2] = {}, inverse[2] = {}, mean[2] = {};
  TACIT_UNROLL
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t q = queries.first + RowOf(2 * half);
    if (kStored || q >= head.rows) continue;
    most[half] = kept.Row(head.shares + q)[0];
    inverse[half] = kept.Row(head.shares + q)[1];
  }
  AwaitTiles();
  query.Take(tiles.x);
  of_out.Take(tiles.y);
  Products shares, gradients;
  // Forms shares and their gradients; calls body(share, gradient, half) for each.
  const auto form = [&](uint32_t t, uint32_t step, const auto& body) {
    if constexpr (!kStored) shares.Form(query, tiles.x, step);
    gradients.Form(of_out, tiles.y, step);
    shares.ForAll([&](float& x, uint32_t j, uint32_t e) {
      const uint32_t q = queries.first + RowOf(e), k = t * kTile + step + ColumnOf(j, e);
      if constexpr (kStored)
        x = StoredShare(kept, head, q, k);
      else
        x = IsSeen(q, k) ? ops::Exp(scale * x - most[e / 2]) * inverse[e / 2] : 0.0f;
      body(x, gradients.number[j][e], e / 2);
    });
  };
  const auto load = [&](uint32_t t) {
    LoadTile(qkv, head, head.all + head.column, t * kTile, tiles.x);
    LoadTile(qkv, head, 2 * head.all + head.column, t * kTile, tiles.y);
  };
  for (uint32_t t = 0; t < key_tiles; ++t) {
    ReleaseTiles();
    load(t);
    AwaitTiles();
    queries.ForSteps(t, [&](uint32_t step) {
      form(t, step, [&](float share, float gradient, uint32_t half) {
        mean[half] = Fma(share, gradient, mean[half]);
      });
    });
  }
  TACIT_UNROLL
  for (uint32_t half = 0; half < 2; ++half) {
    for (uint32_t bits = 1; bits < 4; bits *= 2) mean[half] += ShuffleXor(mean[half], bits);
    const uint32_t q = queries.first + RowOf(2 * half);
    if (q < head.rows && LaneIndex() % 4 == 0) work.Row(head.shares + q)[0] = mean[half];
  }
  Sums<kWidth> of_query;
  for (uint32_t t = key_tiles; t-- > 0;) {
    // The last tile is there.
    if (t + 1 < key_tiles) {
      ReleaseTiles();
      load(t);
      AwaitTiles();
    }
    queries.ForSteps(t, [&](uint32_t step) {
      form(t, step, [&](float& share, float gradient, uint32_t half) {
        share = scale * share * (gradient - mean[half]);
      });
      of_query.Add(shares, tiles.x, step);
    });
  }
  of_query.Write(head, queries.first, head.column, qkv_grad);
}

// Gradients of keys and values: rows of logits are keys here, and their columns queries.
template <uint32_t kWidth, bool kStored, class X>
TACIT_KERNEL_OF(kThreads, 3)
KeyTilesKernel(AttentionShape shape, DeviceMatrix<const X> qkv, DeviceMatrix<const float> kept,
               DeviceMatrix<const X> grad, DeviceMatrix<const float> work,
               DeviceMatrix<X> qkv_grad) {
  auto& tiles = SharedAs<Tiles<kWidth>>();
  const Head head = HeadOf(shape, qkv.rows, grad.cols);
  const uint32_t tile = BlockIndex().z;
  if (tile >= TilesOf(head.rows)) return;
  const uint32_t first = tile * kTile + WarpIndex() * kWarpRows;
  const float scale = 1 / Sqrt(static_cast<float>(head.width));
  Rows<kWidth> key, value;
  LoadTile(qkv, head, head.all + head.column, tile * kTile, tiles.x);
  LoadTile(qkv, head, 2 * head.all + head.column, tile * kTile, tiles.y);
  AwaitTiles();
  key.Take(tiles.x);
  value.Take(tiles.y);
  Sums<kWidth> of_key, of_value;
  Products shares, gradients;
  for (uint32_t t = FirstQueryTile(tile); t < TilesOf(head.rows); ++t) {
    ReleaseTiles();
    LoadTile(qkv, head, head.column, t * kTile, tiles.x);
    LoadTile(grad, head, head.column, t * kTile, tiles.y);
    if (ThreadIndex().x < kTile) {
      // A query behind the crop's last has a share in nothing.
      const uint32_t i = ThreadIndex().x, q = t * kTile + i;
      const bool real = q < head.rows;
      if (!kStored) {
        tiles.most[i] = real ? kept.Row(head.shares + q)[0] : 0.0f;
        tiles.inverse[i] = real ? kept.Row(head.shares + q)[1] : 0.0f;
      }
      tiles.mean[i] = real ? work.Row(head.shares + q)[0] : 0.0f;
    }
    AwaitTiles();
    for (uint32_t step = 0; step < kTile && t * kTile + step < head.rows; step += kStep) {
      // No query of the step sees one of the warp's keys.
      if (first >= head.rows || t * kTile + step + kStep <= first) continue;
      if constexpr (!kStored) shares.Form(key, tiles.x, step);
      gradients.Form(value, tiles.y, step);
      shares.ForAll([&](float& x, uint32_t j, uint32_t e) {
        float& y = gradients.number[j][e];
        const uint32_t i = step + ColumnOf(j, e), q = t * kTile + i, k = first + RowOf(e);
        if constexpr (kStored)
          x = StoredShare(kept, head, q, k);
        else
          x = IsSeen(q, k) ? ops::Exp(scale * x - tiles.most[i]) * tiles.inverse[i] : 0.0f;
        y = scale * x * (y - tiles.mean[i]);
      });
      of_value.Add(shares, tiles.y, step);
      of_key.Add(gradients, tiles.x, step);
    }
  }
  of_key.Write(head, first, head.all + head.column, qkv_grad);
  of_value.Write(head, first, 2 * head.all + head.column, qkv_grad);
}

runtime::LaunchShape Blocks(const AttentionShape& shape, uint32_t shared_bytes) {
  return {.grid = {static_cast<uint32_t>(shape.crop_end.size), shape.heads,
                   shape.longest == 0 ? 1 : TilesOf(shape.longest)},
          .block = {kThreads},
          .shared_bytes = shared_bytes};
}

// Calls body with the narrowest tiles that a head fits into, as a constant.
template <class Body>
Status ForWidth(uint32_t head_width, const Body& body) {
  if (head_width <= 16) return body(std::integral_constant<uint32_t, 16>());
  if (head_width <= 32) return body(std::integral_constant<uint32_t, 32>());
  TACIT_CHECK(head_width <= kTileHeadMost);
  return body(std::integral_constant<uint32_t, kTileHeadMost>());
}

template <bool kCorrected, class X>
Status Forward(Stream& stream, const AttentionShape& shape, DeviceMatrix<const X> qkv,
               const AttentionCorrection& correction, DeviceMatrix<float> kept,
               DeviceMatrix<X> out) {
  return ForWidth(out.cols / shape.heads, [&](auto width) {
    constexpr uint32_t kWidth = decltype(width)::value;
    return Launch(stream, "AttendTiles", Blocks(shape, sizeof(TilesOfPass<kWidth, kCorrected>)),
                  AttendTilesKernel<kWidth, kCorrected, X>, shape, qkv, correction, kept, out);
  });
}
template <bool kStored, class X>
Status Backward(Stream& stream, const AttentionShape& shape, DeviceMatrix<const X> qkv,
                DeviceMatrix<const float> kept, DeviceMatrix<const X> grad,
                DeviceMatrix<float> work, DeviceMatrix<X> qkv_grad) {
  return ForWidth(grad.cols / shape.heads, [&](auto width) -> Status {
    constexpr uint32_t kWidth = decltype(width)::value;
    const auto blocks = Blocks(shape, sizeof(Tiles<kWidth>));
    TACIT_RETURN_IF_ERROR(Launch(stream, "AttendTilesBackwardQueries", blocks,
                                 QueryTilesKernel<kWidth, kStored, X>, shape, qkv, kept, grad, work,
                                 qkv_grad));
    return Launch(stream, "AttendTilesBackwardKeys", blocks, KeyTilesKernel<kWidth, kStored, X>,
                  shape, qkv, kept, grad, work, qkv_grad);
  });
}

void CheckRounded(const AttentionShape& shape, const DeviceMatrix<const uint16_t>& qkv,
                  const DeviceMatrix<const float>& kept, uint32_t width) {
  TACIT_CHECK(shape.heads > 0 && shape.heads < 65536 && width % shape.heads == 0);
  TACIT_CHECK(GoesThroughTiles(shape, width) && !shape.corrected, "tiles without corrections");
  TACIT_CHECK(qkv.cols == 3 * width && kept.rows == uint64_t{shape.heads} * qkv.rows &&
              kept.cols >= KeptNumbers(shape, width));
}

}  // namespace

Status AttendByTiles(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
                     const AttentionCorrection& correction, DeviceMatrix<float> kept,
                     DeviceMatrix<float> out) {
  return shape.corrected ? Forward<true>(stream, shape, qkv, correction, kept, out)
                         : Forward<false>(stream, shape, qkv, correction, kept, out);
}

Status AttendVarianceByTiles(Stream& stream, const AttentionShape& shape,
                             DeviceMatrix<const float> shares,
                             DeviceMatrix<const float> value_variance, DeviceMatrix<float> out) {
  return ForWidth(out.cols / shape.heads, [&](auto width) {
    constexpr uint32_t kWidth = decltype(width)::value;
    return Launch(stream, "AttendTilesVariance", Blocks(shape, sizeof(Tiles<kWidth>)),
                  VarianceTilesKernel<kWidth>, shape, shares, value_variance, out);
  });
}

Status AttendBackwardByTiles(Stream& stream, const AttentionShape& shape,
                             DeviceMatrix<const float> qkv, DeviceMatrix<const float> kept,
                             DeviceMatrix<const float> grad, DeviceMatrix<float> work,
                             DeviceMatrix<float> qkv_grad) {
  return shape.corrected ? Backward<true>(stream, shape, qkv, kept, grad, work, qkv_grad)
                         : Backward<false>(stream, shape, qkv, kept, grad, work, qkv_grad);
}

Status AttendRounded(Stream& stream, const AttentionShape& shape, DeviceMatrix<const uint16_t> qkv,
                     DeviceMatrix<float> kept, DeviceMatrix<uint16_t> out) {
  CheckRounded(shape, qkv, kept, out.cols);
  TACIT_CHECK(out.rows == qkv.rows);
  if (shape.crop_end.size == 0) return {};
  return Forward<false>(stream, shape, qkv, {}, kept, out);
}

Status AttendBackwardRounded(Stream& stream, const AttentionShape& shape,
                             DeviceMatrix<const uint16_t> qkv, DeviceMatrix<const float> kept,
                             DeviceMatrix<const uint16_t> grad, DeviceMatrix<float> work,
                             DeviceMatrix<uint16_t> qkv_grad) {
  CheckRounded(shape, qkv, kept, grad.cols);
  TACIT_CHECK(grad.rows == qkv.rows && work.rows == kept.rows && qkv_grad.rows == qkv.rows &&
              qkv_grad.cols == qkv.cols);
  if (shape.crop_end.size == 0) return {};
  return Backward<false>(stream, shape, qkv, kept, grad, work, qkv_grad);
}

}  // namespace tacit::cuda
