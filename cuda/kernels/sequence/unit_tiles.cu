// Tiles of units' gradients: a block forms 64 x 64 numbers of a^T g. In bf16 that is done on the
// tensor cores (mma.sync), 64 rows at a time, which cp.async brings to a ring in shared memory; in
// f32 by fused multiply-adds, 16 rows at a time. Norms: a block a unit and tile. Sums: a block a
// tile and eight units, whose int64 sums it keeps in registers and adds with atomics, in any
// order. All tables are one launch.
//   bytes:      a tile's share of a and g once a unit; sums 8 a number of the table and eight units
//   operations: 2 n M N for a unit of n rows and a table of M x N, in either pass
// Measured on an H200, bf16, all tables of a transformer of 3,417 items of 64 numbers, 327 units of
// 200 rows: norms .88 ms, sums 1.48, as blocks of four warps: 166 registers of the sums left 12
// warps a multiprocessor, and places were looked at behind the products, one a lane at a time,
// seven trips to memory a list. Now eight warps share a tile, 16 of them in sums and 32 in norms
// have room, and placed rows are added while the first rows of the product come. Forecast: .6
// and 1.0 ms. When f32 did both and a block of the sums went through all units, the items' sums of
// 81 units took 7.6. Registers: README.md.
#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/gemm/mma_tiles.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/reduce.h"
#include "cuda/kernels/rows/ranks.h"
#include "cuda/kernels/sequence/unit_tiles.h"
#include "mechanism/nearest.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kTile = 64;
constexpr uint32_t kUnitsEach = 8;  // of a block that sums
constexpr uint32_t kAhead = 4;      // places that a lane looks at at once
constexpr uint32_t kVectorBlock = 128;

constexpr uint32_t TilesOf(uint32_t n) { return (n + kTile - 1) / kTile; }

TACIT_IN_KERNEL uint32_t FirstOf(const DeviceSpan<const uint32_t>& end, uint32_t unit) {
  return unit == 0 ? 0 : end[unit - 1];
}

// The tables of one launch, a value passed to kernels as it is.
template <class T>
struct TableList {
  static constexpr uint32_t kMost = 12;

  uint32_t count = 0;
  uint32_t tile_end[kMost] = {};  // per table: the end of its tiles
  UnitTable<T> at[kMost] = {};

  uint32_t tiles() const { return count == 0 ? 0 : tile_end[count - 1]; }
};

// A tile's table, and the tile's first number in it.
struct Where {
  uint32_t table, row0, col0;
};
template <class T>
TACIT_IN_KERNEL Where Find(const TableList<T>& tables, uint32_t tile) {
  uint32_t which = 0, first = 0;
  while (tile >= tables.tile_end[which]) first = tables.tile_end[which++];
  const uint32_t across = (tables.at[which].cols + kTile - 1) / kTile;
  return {which, (tile - first) / across * kTile, (tile - first) % across * kTile};
}

// A block's way of forming a tile of a unit's product: a thread's numbers are kDown rows x kAcross
// columns, and a warp's lie in kWarpRows rows from WarpRow.
template <class T>
struct Former;

template <>
struct Former<float> {
  static constexpr uint32_t kBlock = 256, kDown = 4, kAcross = 4, kWarpRows = 8;
  static constexpr uint32_t kDepth = 16, kThreadsAcross = kTile / kAcross;
  struct alignas(16) Shared {
    float a[kDepth][kTile], g[kDepth][kTile];
  };
  float number[kDown][kAcross];

  TACIT_IN_KERNEL static uint32_t WarpRow() { return WarpIndex() * kWarpRows; }
  TACIT_IN_KERNEL static uint32_t RowOf(uint32_t i) {
    return ThreadIndex().x / kThreadsAcross * kDown + i;
  }
  TACIT_IN_KERNEL static uint32_t ColOf(uint32_t j) {
    return ThreadIndex().x % kThreadsAcross * kAcross + j;
  }
  TACIT_IN_KERNEL float& At(uint32_t i, uint32_t j) { return number[i][j]; }

  TACIT_IN_KERNEL void Clear() {
    TACIT_UNROLL
    for (uint32_t i = 0; i < kDown; ++i) TACIT_UNROLL
    for (uint32_t j = 0; j < kAcross; ++j) number[i][j] = 0;
  }
  // Adds the products of rows `first` to `last` of a and g, behind meanwhile(). All of the block
  // must be there.
  template <class Meanwhile>
  TACIT_IN_KERNEL void AddRows(const UnitTable<float>& table, uint32_t first, uint32_t last,
                               uint32_t row0, uint32_t col0, Shared& shared,
                               const Meanwhile& meanwhile) {
    meanwhile();
    for (uint32_t begin = first; begin < last; begin += kDepth) {
      for (uint32_t at = ThreadIndex().x; at < kDepth * kTile; at += kBlock) {
        const uint32_t k = at / kTile, c = at % kTile, r = begin + k;
        const uint32_t m = row0 + c, n = col0 + c;
        const bool real = r < last;
        float one = 0;
        if (real && m < table.a.cols) one = table.a.Row(r)[m];
        if (real && table.ones && m == table.a.cols) one = 1;
        shared.a[k][c] = one;
        shared.g[k][c] = real && n < table.g.cols ? table.g.Row(r)[n] : 0.0f;
      }
      SyncBlock();
      for (uint32_t k = 0; k < kDepth; ++k) TACIT_UNROLL
      for (uint32_t i = 0; i < kDown; ++i) TACIT_UNROLL
      for (uint32_t j = 0; j < kAcross; ++j)
        number[i][j] = Fma(shared.a[k][RowOf(i)], shared.g[k][ColOf(j)], number[i][j]);
      SyncBlock();
    }
  }
};

template <>
struct Former<uint16_t> {
  static constexpr uint32_t kBlock = 256, kDown = 2, kAcross = 8, kWarpRows = 16;
  static constexpr uint32_t kDepth = 64, kStages = 3, kWarpCols = 32;
  static constexpr uint32_t kWarpsAcross = kTile / kWarpCols;
  static constexpr uint16_t kOne = 0x3f80;
  using Rows = Stage<kDepth, kTile>;
  struct alignas(16) Shared {
    Rows a[kStages], g[kStages];
  };
  float sum[1][4][4];  // fragments of 16 x 8 numbers, four a lane

  TACIT_IN_KERNEL static uint32_t WarpRow() { return WarpIndex() / kWarpsAcross * kWarpRows; }
  TACIT_IN_KERNEL static uint32_t WarpCol() { return WarpIndex() % kWarpsAcross * kWarpCols; }
  TACIT_IN_KERNEL static uint32_t RowOf(uint32_t i) { return WarpRow() + 8 * i + LaneIndex() / 4; }
  TACIT_IN_KERNEL static uint32_t ColOf(uint32_t j) {
    return WarpCol() + j / 2 * 8 + LaneIndex() % 4 * 2 + j % 2;
  }
  TACIT_IN_KERNEL float& At(uint32_t i, uint32_t j) { return sum[0][j / 2][2 * i + j % 2]; }

  TACIT_IN_KERNEL void Clear() {
    TACIT_UNROLL
    for (uint32_t i = 0; i < kDown; ++i) TACIT_UNROLL
    for (uint32_t j = 0; j < kAcross; ++j) At(i, j) = 0;
  }
  // Starts the copies of a's rows from `begin`, with the ones behind its columns.
  TACIT_IN_KERNEL static void LoadRows(const UnitTable<uint16_t>& table, uint32_t begin,
                                       uint32_t last, uint32_t row0, Rows& stage) {
    ForMyChunks<kBlock, Rows>([&](uint32_t r, uint32_t c) {
      const uint32_t row = begin + r, col = row0 + c, cols = table.a.cols;
      if (!table.ones || col > cols || col + kChunk <= cols) {
        LoadChunk(&stage.number[r][c], table.a, row, last, col, cols);
        return;
      }
      for (uint32_t e = 0; e < kChunk; ++e) {
        uint16_t number = col + e == cols ? kOne : uint16_t{0};
        if (col + e < cols && row < last) number = table.a.Row(row)[col + e];
        stage.number[r][c + e] = row < last ? number : uint16_t{0};
      }
    });
  }
  // meanwhile() is called while the first rows are on their way.
  template <class Meanwhile>
  TACIT_IN_KERNEL void AddRows(const UnitTable<uint16_t>& table, uint32_t first, uint32_t last,
                               uint32_t row0, uint32_t col0, Shared& shared,
                               const Meanwhile& meanwhile) {
    const uint32_t steps = (last - first + kDepth - 1) / kDepth;
    const auto load = [&](uint32_t step) {
      if (step < steps) {
        const uint32_t begin = first + step * kDepth, stage = step % kStages;
        LoadRows(table, begin, last, row0, shared.a[stage]);
        LoadStage<kBlock>(shared.g[stage], table.g, begin, last, col0, table.g.cols);
      }
      CommitCopies();
    };
    const bool at_work = row0 + WarpRow() < table.rows && col0 + WarpCol() < table.cols;
    TACIT_UNROLL
    for (uint32_t step = 0; step + 1 < kStages; ++step) load(step);
    meanwhile();
    for (uint32_t step = 0; step < steps; ++step) {
      WaitCopies<kStages - 2>();
      SyncBlock();
      // Into the stage that all warps were done with before the barrier.
      load(step + kStages - 1);
      if (!at_work) continue;
      const uint32_t left = last - first - step * kDepth;
      TACIT_UNROLL
      for (uint32_t k = 0; k < kDepth; k += kFragment) {
        if (k >= left) break;
        AddFragments<true, false, 1, 2>(sum, shared.a[step % kStages], shared.g[step % kStages],
                                        WarpRow(), WarpCol(), k);
      }
    }
    WaitCopies<0>();
    SyncBlock();
  }
};

// Adds a row to one of the warp's.
template <class T, class P>
TACIT_IN_KERNEL void AddRow(const PlacedRows<P>& placed, uint32_t r, uint32_t of_warp,
                            const Where& where, uint32_t cols, Former<T>& tile) {
  const uint32_t row = of_warp + Former<T>::WarpRow();
  const float factor = placed.factor.size == 0 ? placed.each : placed.factor[r];
  TACIT_UNROLL
  for (uint32_t i = 0; i < Former<T>::kDown; ++i) {
    if (Former<T>::RowOf(i) != row) continue;
    TACIT_UNROLL
    for (uint32_t j = 0; j < Former<T>::kAcross; ++j) {
      const uint32_t col = where.col0 + Former<T>::ColOf(j);
      if (col < cols) tile.At(i, j) = Fma(factor, Widen(placed.from.Row(r)[col]), tile.At(i, j));
    }
  }
}

// Each lane looks at the places of a few rows at once; those that lie in the warp's rows are added
// by the whole warp, one after the other.
template <class T, class P>
TACIT_IN_KERNEL void AddPlaced(const PlacedRows<P>& placed, uint32_t unit, const Where& where,
                               uint32_t cols, Former<T>& tile) {
  if (placed.unit_end.size == 0) return;
  const uint32_t last = placed.unit_end[unit], row0 = where.row0 + Former<T>::WarpRow();
  for (uint32_t begin = FirstOf(placed.unit_end, unit); begin < last; begin += kAhead * kWarp) {
    uint32_t place[kAhead];
    TACIT_UNROLL
    for (uint32_t a = 0; a < kAhead; ++a) {
      const uint32_t mine = begin + a * kWarp + LaneIndex();
      // kNone is far from every row.
      place[a] = mine < last ? placed.place[mine] - row0 : kNone;
    }
    TACIT_UNROLL
    for (uint32_t a = 0; a < kAhead; ++a) {
      uint32_t hits = Ballot(place[a] < Former<T>::kWarpRows);
      for (; hits != 0; hits &= hits - 1) {
        const uint32_t lane = CountBits((hits & (0 - hits)) - 1);
        AddRow(placed, begin + a * kWarp + lane, Shuffle(place[a], lane), where, cols, tile);
      }
    }
  }
}

template <class T>
TACIT_IN_KERNEL void Form(const UnitTable<T>& table, uint32_t unit, const Where& where,
                          typename Former<T>::Shared& shared, Former<T>& tile) {
  tile.Clear();
  const auto add_placed = [&] {
    AddPlaced(table.own, unit, where, table.cols, tile);
    AddPlaced(table.input, unit, where, table.cols, tile);
  };
  if (table.g.cols == 0) return add_placed();
  tile.AddRows(table, FirstOf(table.unit_end, unit), table.unit_end[unit], where.row0, where.col0,
               shared, add_placed);
}

// Calls body(i, j, row, column) for the numbers of a thread that are in the table.
template <class T, class Body>
TACIT_IN_KERNEL void ForMine(const UnitTable<T>& table, const Where& where, const Body& body) {
  TACIT_UNROLL
  for (uint32_t i = 0; i < Former<T>::kDown; ++i) {
    TACIT_UNROLL
    for (uint32_t j = 0; j < Former<T>::kAcross; ++j) {
      const uint32_t row = where.row0 + Former<T>::RowOf(i);
      const uint32_t col = where.col0 + Former<T>::ColOf(j);
      if (row < table.rows && col < table.cols) body(i, j, row, col);
    }
  }
}

template <class T>
struct alignas(16) NormsShared {
  typename Former<T>::Shared tiles;
  double of_warp[Former<T>::kBlock / kWarp];
};

template <class T>
TACIT_KERNEL_OF(Former<T>::kBlock, 4)
NormsKernel(TableList<T> tables, DeviceSpan<double> work) {
  auto& shared = SharedAs<NormsShared<T>>();
  const uint32_t unit = BlockIndex().y;
  const Where where = Find(tables, BlockIndex().x);
  const UnitTable<T>& table = tables.at[where.table];
  Former<T> tile;
  Form(table, unit, where, shared.tiles, tile);
  double squared = 0;
  ForMine(table, where, [&](uint32_t i, uint32_t j, uint32_t, uint32_t) {
    squared = Fma(double{tile.At(i, j)}, double{tile.At(i, j)}, squared);
  });
  squared = BlockSum(squared, shared.of_warp);
  if (ThreadIndex().x == 0) work[uint64_t{unit} * GridSize().x + BlockIndex().x] = squared;
}

// A warp a unit.
TACIT_KERNEL AddTilesKernel(DeviceSpan<const double> work, uint32_t tiles,
                            DeviceSpan<double> squared) {
  const uint64_t u = GlobalThread() / kWarp;
  if (u >= squared.size) return;
  double sum = 0;
  for (uint32_t t = LaneIndex(); t < tiles; t += kWarp) sum += work[u * tiles + t];
  sum = WarpSum(sum);
  if (LaneIndex() == 0) squared[u] += sum;
}

template <class T>
TACIT_KERNEL SumsKernel(TableList<T> tables, DeviceSpan<const float> scale, double per_step) {
  auto& shared = SharedAs<typename Former<T>::Shared>();
  const Where where = Find(tables, BlockIndex().x);
  const UnitTable<T>& table = tables.at[where.table];
  const uint32_t begin = BlockIndex().y * kUnitsEach;
  int64_t steps[Former<T>::kDown][Former<T>::kAcross] = {};
  for (uint32_t unit = begin; unit < begin + kUnitsEach && unit < scale.size; ++unit) {
    if (scale[unit] == 0) continue;
    const auto factor = static_cast<float>(scale[unit] * per_step);
    Former<T> tile;
    Form(table, unit, where, shared, tile);
    TACIT_UNROLL
    for (uint32_t i = 0; i < Former<T>::kDown; ++i) TACIT_UNROLL
    for (uint32_t j = 0; j < Former<T>::kAcross; ++j)
      steps[i][j] += mechanism::Nearest(double{factor * tile.At(i, j)});
  }
  ForMine(table, where, [&](uint32_t i, uint32_t j, uint32_t row, uint32_t col) {
    if (steps[i][j] != 0) AtomicAdd(&table.sums[uint64_t{row} * table.cols + col], steps[i][j]);
  });
}

TACIT_KERNEL VectorNormsKernel(DeviceMatrix<const float> gradients, DeviceSpan<double> squared) {
  const uint64_t u = GlobalThread() / kWarp;
  if (u >= gradients.rows) return;
  double sum = 0;
  for (uint32_t c = LaneIndex(); c < gradients.cols; c += kWarp) {
    const double x = gradients.Row(u)[c];
    sum = Fma(x, x, sum);
  }
  sum = WarpSum(sum);
  if (LaneIndex() == 0) squared[u] += sum;
}

TACIT_KERNEL VectorSumsKernel(DeviceMatrix<const float> gradients, DeviceSpan<const float> scale,
                              double per_step, DeviceSpan<int64_t> sums) {
  const uint64_t c = GlobalThread();
  if (c >= sums.size) return;
  const uint32_t begin = BlockIndex().y * kUnitsEach;
  int64_t steps = 0;
  for (uint32_t u = begin; u < begin + kUnitsEach && u < gradients.rows; ++u) {
    if (scale[u] == 0) continue;
    const auto factor = static_cast<float>(scale[u] * per_step);
    steps += mechanism::Nearest(double{factor * gradients.Row(u)[c]});
  }
  if (steps != 0) AtomicAdd(&sums[c], steps);
}

// Blocks that share the units.
uint32_t Shares(size_t units) {
  return static_cast<uint32_t>((units + kUnitsEach - 1) / kUnitsEach);
}

template <class T>
void CheckPlaced(const PlacedRows<T>& placed, uint32_t cols, size_t units) {
  if (placed.unit_end.size == 0) return;
  TACIT_CHECK(placed.unit_end.size == units && placed.place.size == placed.from.rows &&
                  placed.from.cols == cols &&
                  (placed.factor.size == 0 || placed.factor.size == placed.place.size),
              "a place for each row");
}
template <class T>
void CheckTable(const UnitTable<T>& table, size_t units) {
  TACIT_CHECK(table.rows < kNone - kTile && units < 65536, "tables and waves have their limits");
  if (table.g.cols > 0) {
    TACIT_CHECK(table.unit_end.size == units && table.a.rows == table.g.rows &&
                    table.a.cols + (table.ones ? 1 : 0) == table.rows && table.g.cols == table.cols,
                "the product has the table's shape");
    if constexpr (std::is_same_v<T, uint16_t>)
      TACIT_CHECK(MayBeCopied(table.a) && MayBeCopied(table.g),
                  "rows begin at multiples of 16 bytes");
  }
  CheckPlaced(table.own, table.cols, units);
  CheckPlaced(table.input, table.cols, units);
}

// Calls launch(list) for lists of all tables.
template <class T, class LaunchList>
Status ForLists(std::span<const UnitTable<T>> tables, size_t units, const LaunchList& launch) {
  if (units == 0) return {};
  TableList<T> list;
  for (const UnitTable<T>& table : tables) {
    CheckTable(table, units);
    const uint32_t tiles = TilesOf(table.rows) * TilesOf(table.cols);
    if (tiles == 0) continue;
    if (list.count == TableList<T>::kMost) {
      TACIT_RETURN_IF_ERROR(launch(list));
      list = TableList<T>();
    }
    list.tile_end[list.count] = list.tiles() + tiles;
    list.at[list.count++] = table;
  }
  return list.count == 0 ? Status() : launch(list);
}

}  // namespace

template <class T>
size_t UnitTableWork(std::span<const UnitTable<T>> tables, size_t units) {
  size_t tiles = 0;
  for (const UnitTable<T>& table : tables)
    tiles += size_t{TilesOf(table.rows)} * TilesOf(table.cols);
  return tiles * units;
}

template <class T>
Status AddUnitTableNorms(Stream& stream, std::span<const UnitTable<T>> tables,
                         DeviceSpan<double> work, DeviceSpan<double> squared) {
  const size_t units = squared.size;
  TACIT_CHECK(work.size >= UnitTableWork(tables, units), "too little work");
  return ForLists(tables, units, [&](const TableList<T>& list) -> Status {
    TACIT_RETURN_IF_ERROR(Launch(stream, "UnitTableNorms",
                                 {.grid = {list.tiles(), static_cast<uint32_t>(units)},
                                  .block = {Former<T>::kBlock},
                                  .shared_bytes = sizeof(NormsShared<T>)},
                                 NormsKernel<T>, list, work));
    return Launch(stream, "AddTiles",
                  {.grid = BlocksFor(units * kWarp, kVectorBlock),
                   .block = {kVectorBlock},
                   .shared_bytes = 0},
                  AddTilesKernel, work, list.tiles(), squared);
  });
}

template <class T>
Status AddUnitTables(Stream& stream, std::span<const UnitTable<T>> tables,
                     DeviceSpan<const float> scale, double step) {
  TACIT_CHECK(step > 0);
  for (const UnitTable<T>& table : tables)
    TACIT_CHECK(table.sums.size == uint64_t{table.rows} * table.cols, "a sum for each number");
  return ForLists(tables, scale.size, [&](const TableList<T>& list) {
    return Launch(stream, "UnitTables",
                  {.grid = {list.tiles(), Shares(scale.size)},
                   .block = {Former<T>::kBlock},
                   .shared_bytes = sizeof(typename Former<T>::Shared)},
                  SumsKernel<T>, list, scale, 1 / step);
  });
}

Status AddUnitVectorNorms(Stream& stream, DeviceMatrix<const float> gradients,
                          DeviceSpan<double> squared) {
  TACIT_CHECK(squared.size == gradients.rows, "one norm per unit");
  return Launch(stream, "UnitVectorNorms",
                {.grid = BlocksFor(squared.size * kWarp, kVectorBlock),
                 .block = {kVectorBlock},
                 .shared_bytes = 0},
                VectorNormsKernel, gradients, squared);
}

Status AddUnitVectors(Stream& stream, DeviceMatrix<const float> gradients,
                      DeviceSpan<const float> scale, double step, DeviceSpan<int64_t> sums) {
  TACIT_CHECK(scale.size == gradients.rows && sums.size == gradients.cols && step > 0);
  TACIT_CHECK(scale.size < 65536, "waves have their limits");
  if (scale.size == 0) return {};
  return Launch(stream, "UnitVectors",
                {.grid = {BlocksFor(sums.size, kVectorBlock).x, Shares(scale.size)},
                 .block = {kVectorBlock},
                 .shared_bytes = 0},
                VectorSumsKernel, gradients, scale, 1 / step, sums);
}

#define TACIT_UNIT_TILES(T)                                                                        \
  template size_t UnitTableWork<T>(std::span<const UnitTable<T>>, size_t);                         \
  template Status AddUnitTableNorms<T>(Stream&, std::span<const UnitTable<T>>, DeviceSpan<double>, \
                                       DeviceSpan<double>);                                        \
  template Status AddUnitTables<T>(Stream&, std::span<const UnitTable<T>>,                         \
                                   DeviceSpan<const float>, double)
TACIT_UNIT_TILES(float);
TACIT_UNIT_TILES(uint16_t);
#undef TACIT_UNIT_TILES

}  // namespace tacit::cuda
