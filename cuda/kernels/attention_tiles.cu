// Attention on tensor cores (mma.sync m16n8k16): a block a crop, head and tile of 64 queries, or of
// keys; a warp 16 of them. Tiles are rounded to bf16 on their way into shared memory, and the
// causal mask leaves out those above the diagonal. Logits and shares are never in memory: a query
// keeps its largest logit and the sum of its exponentials, and each pass forms its shares again.
// Forward, and backward for queries, keys go by twice: shares are rounded as factors once their sum
// is known, as the CPU does, so there is nothing to scale again. The second time they go by
// backwards, so that the last tile need not be brought again. Gradients of keys and values are a
// pass of their own, by tiles of keys; nothing is added in memory.
//   bytes:      per crop of n rows and head of width d, t = ceil(n / 64) tiles of rows, T = t (t +
//               1) / 2 pairs of them: forward 4 d (n + 64 (3 T - t)) in and 4 d n out, backward for
//               queries 4 d (2 n + 64 (4 T - 2 t)) in and 4 d n out, for keys 4 d (2 n + 128 T) in
//               and 8 d n out, all but the first reading of a row out of the second-level cache
//   operations: forward 3, for queries 5, for keys 4 products of n^2 d operations, and half of
//               those of the blocks on the diagonal; 1, 1 and .5 n^2 exponentials of 20 each
// 512 crops of 200 rows, a head of 64: 285, 335 and 367 MB out of the cache, 27, 34 and 21
// GFLOP. Forecast for an H200: .12, .16 and .15 ms, where a warp a query took 3.1, 3.1 and 2.5.
// Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/attention_parts.h"
#include "cuda/kernels/attention_tiles.h"
#include "cuda/kernels/mma_tiles.h"
#include "cuda/kernels/number.h"
#include "cuda/kernels/vector.h"
#include "ops/exp.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kWarps = 4, kThreads = kWarps * kWarp;
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

// Brings the tile from a crop's row `row` on; zeros behind the crop's rows and the head's columns.
template <class S>
TACIT_IN_KERNEL void LoadTile(const DeviceMatrix<const float>& x, const Head& head, uint32_t column,
                              uint32_t row, S& tile) {
  ForMyChunks<kThreads, S>([&](uint32_t r, uint32_t c) {
    Vector<uint16_t, kChunk> rounded = {};
    if (row + r < head.rows && c < head.width) {
      const float* const from = x.Row(head.first + row + r) + column + c;
      const uint32_t left = head.width - c;
      TACIT_UNROLL
      for (uint32_t i = 0; i < kChunk; i += 4) {
        const auto four = LoadVector<4>(from + i, left > i ? left - i : 0);
        TACIT_UNROLL
        for (uint32_t e = 0; e < 4; ++e) Narrow(four.x[e], &rounded.x[i + e]);
      }
    }
    *reinterpret_cast<Vector<uint16_t, kChunk>*>(&tile.number[r][c]) = rounded;
  });
}

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
  float number[kParts][4];

  template <uint32_t kWidth>
  TACIT_IN_KERNEL void Form(const Rows<kWidth>& rows, const Stage<kTile, kWidth>& tile,
                            uint32_t first) {
    TACIT_UNROLL
    for (uint32_t j = 0; j < kParts; ++j) TACIT_UNROLL
    for (uint32_t e = 0; e < 4; ++e) number[j][e] = 0;
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
  TACIT_IN_KERNEL void Write(const Head& head, uint32_t row, uint32_t column,
                             const DeviceMatrix<float>& to) const {
    TACIT_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t r = row + RowOf(2 * half);
      if (r >= head.rows) continue;
      float* const numbers = to.Row(head.first + r) + column;
      TACIT_UNROLL
      for (uint32_t j = 0; j < kWidth / 8; ++j) {
        const uint32_t c = ColumnOf(j, 0);
        if (c < head.width)
          StoreVector(Vector<float, 2>{number[j][2 * half], number[j][2 * half + 1]},
                      head.width - c, numbers + c);
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

  // Adds scaled products of queries from `query` on with keys from `key` on.
  TACIT_IN_KERNEL void Add(const Products& logits, float scale, uint32_t query, uint32_t key) {
    TACIT_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t q = query + RowOf(2 * half);
      float next = most[half], added = 0;
      TACIT_UNROLL
      for (uint32_t j = 0; j < kParts; ++j) TACIT_UNROLL
      for (uint32_t e = 2 * half; e < 2 * half + 2; ++e)
        if (IsSeen(q, key + ColumnOf(j, e))) next = Larger(next, scale * logits.number[j][e]);
      TACIT_UNROLL
      for (uint32_t j = 0; j < kParts; ++j) TACIT_UNROLL
      for (uint32_t e = 2 * half; e < 2 * half + 2; ++e)
        if (IsSeen(q, key + ColumnOf(j, e))) added += ops::Exp(scale * logits.number[j][e] - next);
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

template <uint32_t kWidth>
TACIT_KERNEL_OF(kThreads, 4)
AttendTilesKernel(AttentionShape shape, DeviceMatrix<const float> qkv, DeviceMatrix<float> kept,
                  DeviceMatrix<float> out) {
  auto& tiles = SharedAs<Tiles<kWidth>>();
  const Head head = HeadOf(shape, qkv.rows, out.cols);
  if (BlockIndex().z >= TilesOf(head.rows)) return;
  // Those with the most keys begin.
  const Queries queries(head, TilesOf(head.rows) - 1 - BlockIndex().z);
  const uint32_t key_tiles = EndOfKeyTiles(queries.tile);
  const float scale = 1 / Sqrt(static_cast<float>(head.width));
  Rows<kWidth> query;
  LoadTile(qkv, head, head.column, queries.tile * kTile, tiles.x);
  AwaitTiles();
  query.Take(tiles.x);
  Products logits;
  Softmax softmax;
  for (uint32_t t = 0; t < key_tiles; ++t) {
    ReleaseTiles();
    LoadTile(qkv, head, head.all + head.column, t * kTile, tiles.x);
    AwaitTiles();
    queries.ForSteps(t, [&](uint32_t step) {
      logits.Form(query, tiles.x, step);
      softmax.Add(logits, scale, queries.first, t * kTile + step);
    });
  }
  softmax.Join();
  float inverse[2];
  TACIT_UNROLL
  for (uint32_t half = 0; half < 2; ++half) {
    inverse[half] = 1 / softmax.sum[half];
    const uint32_t q = queries.first + RowOf(2 * half);
    if (q >= head.rows || LaneIndex() % 4 != 0) continue;
    float* const to = kept.Row(head.shares + q);
    to[0] = softmax.most[half];
    to[1] = inverse[half];
  }
  Sums<kWidth> values;
  for (uint32_t t = key_tiles; t-- > 0;) {
    ReleaseTiles();
    if (t + 1 < key_tiles) LoadTile(qkv, head, head.all + head.column, t * kTile, tiles.x);
    LoadTile(qkv, head, 2 * head.all + head.column, t * kTile, tiles.y);
    AwaitTiles();
    queries.ForSteps(t, [&](uint32_t step) {
      logits.Form(query, tiles.x, step);
      TACIT_UNROLL
      for (uint32_t j = 0; j < kParts; ++j) TACIT_UNROLL
      for (uint32_t e = 0; e < 4; ++e) {
        float& x = logits.number[j][e];
        const bool seen = IsSeen(queries.first + RowOf(e), t * kTile + step + ColumnOf(j, e));
        x = seen ? ops::Exp(scale * x - softmax.most[e / 2]) * inverse[e / 2] : 0.0f;
      }
      values.Add(logits, tiles.y, step);
    });
  }
  values.Write(head, queries.first, head.column, out);
}

// Means of gradients of shares, into `work`, and gradients of queries.
template <uint32_t kWidth>
TACIT_KERNEL_OF(kThreads, 3)
QueryTilesKernel(AttentionShape shape, DeviceMatrix<const float> qkv,
                 DeviceMatrix<const float> kept, DeviceMatrix<const float> grad,
                 DeviceMatrix<float> work, DeviceMatrix<float> qkv_grad) {
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
    if (q >= head.rows) continue;
    most[half] = kept.Row(head.shares + q)[0];
    inverse[half] = kept.Row(head.shares + q)[1];
  }
  AwaitTiles();
  query.Take(tiles.x);
  of_out.Take(tiles.y);
  Products shares, gradients;
  // Forms shares and their gradients; calls body(share, gradient, half) for each.
  const auto form = [&](uint32_t t, uint32_t step, const auto& body) {
    shares.Form(query, tiles.x, step);
    gradients.Form(of_out, tiles.y, step);
    TACIT_UNROLL
    for (uint32_t j = 0; j < kParts; ++j) TACIT_UNROLL
    for (uint32_t e = 0; e < 4; ++e) {
      float& x = shares.number[j][e];
      const bool seen = IsSeen(queries.first + RowOf(e), t * kTile + step + ColumnOf(j, e));
      x = seen ? ops::Exp(scale * x - most[e / 2]) * inverse[e / 2] : 0.0f;
      body(x, gradients.number[j][e], e / 2);
    }
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
template <uint32_t kWidth>
TACIT_KERNEL_OF(kThreads, 3)
KeyTilesKernel(AttentionShape shape, DeviceMatrix<const float> qkv, DeviceMatrix<const float> kept,
               DeviceMatrix<const float> grad, DeviceMatrix<const float> work,
               DeviceMatrix<float> qkv_grad) {
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
      tiles.most[i] = real ? kept.Row(head.shares + q)[0] : 0.0f;
      tiles.inverse[i] = real ? kept.Row(head.shares + q)[1] : 0.0f;
      tiles.mean[i] = real ? work.Row(head.shares + q)[0] : 0.0f;
    }
    AwaitTiles();
    for (uint32_t step = 0; step < kTile && t * kTile + step < head.rows; step += kStep) {
      // No query of the step sees one of the warp's keys.
      if (first >= head.rows || t * kTile + step + kStep <= first) continue;
      shares.Form(key, tiles.x, step);
      gradients.Form(value, tiles.y, step);
      TACIT_UNROLL
      for (uint32_t j = 0; j < kParts; ++j) TACIT_UNROLL
      for (uint32_t e = 0; e < 4; ++e) {
        float& x = shares.number[j][e];
        float& y = gradients.number[j][e];
        const uint32_t i = step + ColumnOf(j, e);
        const bool seen = IsSeen(t * kTile + i, first + RowOf(e));
        x = seen ? ops::Exp(scale * x - tiles.most[i]) * tiles.inverse[i] : 0.0f;
        y = scale * x * (y - tiles.mean[i]);
      }
      of_value.Add(shares, tiles.y, step);
      of_key.Add(gradients, tiles.x, step);
    }
  }
  of_key.Write(head, first, head.all + head.column, qkv_grad);
  of_value.Write(head, first, 2 * head.all + head.column, qkv_grad);
}

template <uint32_t kWidth>
runtime::LaunchShape Blocks(const AttentionShape& shape) {
  return {.grid = {static_cast<uint32_t>(shape.crop_end.size), shape.heads,
                   shape.longest == 0 ? 1 : TilesOf(shape.longest)},
          .block = {kThreads},
          .shared_bytes = sizeof(Tiles<kWidth>)};
}

// Calls body with the narrowest tiles that a head fits into, as a constant.
template <class Body>
Status ForWidth(uint32_t head_width, const Body& body) {
  if (head_width <= 16) return body(std::integral_constant<uint32_t, 16>());
  if (head_width <= 32) return body(std::integral_constant<uint32_t, 32>());
  TACIT_CHECK(head_width <= kTileHeadMost);
  return body(std::integral_constant<uint32_t, kTileHeadMost>());
}

}  // namespace

Status AttendByTiles(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
                     DeviceMatrix<float> kept, DeviceMatrix<float> out) {
  return ForWidth(out.cols / shape.heads, [&](auto width) {
    return Launch(stream, "AttendTiles", Blocks<width.value>(shape), AttendTilesKernel<width.value>,
                  shape, qkv, kept, out);
  });
}

Status AttendBackwardByTiles(Stream& stream, const AttentionShape& shape,
                             DeviceMatrix<const float> qkv, DeviceMatrix<const float> kept,
                             DeviceMatrix<const float> grad, DeviceMatrix<float> work,
                             DeviceMatrix<float> qkv_grad) {
  return ForWidth(grad.cols / shape.heads, [&](auto width) -> Status {
    const auto blocks = Blocks<width.value>(shape);
    TACIT_RETURN_IF_ERROR(Launch(stream, "AttendTilesBackwardQueries", blocks,
                                 QueryTilesKernel<width.value>, shape, qkv, kept, grad, work,
                                 qkv_grad));
    return Launch(stream, "AttendTilesBackwardKeys", blocks, KeyTilesKernel<width.value>, shape,
                  qkv, kept, grad, work, qkv_grad);
  });
}

}  // namespace tacit::cuda
