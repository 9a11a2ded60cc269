// Tiles of units' gradients: a block forms 64 x 64 numbers of a^T g, 16 numbers a thread, 16 rows
// at a time in shared memory. Norms: a block a unit and tile. Sums: a block a tile, which goes
// through the units in order and keeps int64 sums in registers.
//   bytes:      a tile's share of a and g once a unit; sums 8 a number of the table, once
//   operations: 2 n M N for a unit of n rows and a table of M x N, in either pass
// Products bound both. Over 3,417 items of 64 numbers a sequence of 200 positions costs 87 M of
// them a pass: at 60 TFLOP/s of f32 1.5 us a sequence, 3 us for both; tensor cores would take a
// tenth. Sums have 54 tiles for that table, fewer than multiprocessors: a wave is cut into parts by
// units there once a card has said that it matters. Forecast: 5 us a sequence. Registers:
// README.md.
#include <algorithm>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/number.h"
#include "cuda/kernels/ranks.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/unit_tiles.h"
#include "mechanism/nearest.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kTile = 64, kDepth = 16, kBlock = 256, kEach = 4;
constexpr uint32_t kAcross = kTile / kEach;  // threads side by side
constexpr uint32_t kVectorBlock = 128;

struct alignas(16) Tiles {
  float a[kDepth][kTile], g[kDepth][kTile];
  double of_warp[kBlock / kWarp];
};

TACIT_IN_KERNEL uint32_t FirstOf(const DeviceSpan<const uint32_t>& end, uint32_t unit) {
  return unit == 0 ? 0 : end[unit - 1];
}

// The numbers of a thread: rows `row` and the three behind it, columns likewise.
struct Mine {
  uint32_t row0, col0;  // of the tile
  uint32_t row, col;
};
TACIT_IN_KERNEL Mine MineOf(uint32_t tile_row, uint32_t tile_col) {
  const uint32_t t = ThreadIndex().x;
  return {.row0 = tile_row * kTile,
          .col0 = tile_col * kTile,
          .row = tile_row * kTile + t / kAcross * kEach,
          .col = tile_col * kTile + t % kAcross * kEach};
}

template <class T>
TACIT_IN_KERNEL void AddPlaced(const PlacedRows<T>& placed, uint32_t unit, const Mine& mine,
                               uint32_t cols, float (&tile)[kEach][kEach]) {
  if (placed.unit_end.size == 0) return;
  for (uint32_t r = FirstOf(placed.unit_end, unit); r < placed.unit_end[unit]; ++r) {
    const uint32_t i = placed.place[r] - mine.row;  // kNone is far from every row
    if (i >= kEach) continue;
    const float factor = placed.factor.size == 0 ? placed.each : placed.factor[r];
    TACIT_UNROLL
    for (uint32_t row = 0; row < kEach; ++row) {
      if (row != i) continue;
      TACIT_UNROLL
      for (uint32_t j = 0; j < kEach; ++j)
        if (mine.col + j < cols)
          tile[row][j] = Fma(factor, Widen(placed.from.Row(r)[mine.col + j]), tile[row][j]);
    }
  }
}

template <class T>
TACIT_IN_KERNEL void Form(const UnitTable<T>& table, uint32_t unit, const Mine& mine, Tiles& shared,
                          float (&tile)[kEach][kEach]) {
  TACIT_UNROLL
  for (uint32_t i = 0; i < kEach; ++i) TACIT_UNROLL
  for (uint32_t j = 0; j < kEach; ++j) tile[i][j] = 0;
  const uint32_t first = table.g.cols == 0 ? 0 : FirstOf(table.unit_end, unit);
  const uint32_t last = table.g.cols == 0 ? 0 : table.unit_end[unit];
  for (uint32_t begin = first; begin < last; begin += kDepth) {
    for (uint32_t at = ThreadIndex().x; at < kDepth * kTile; at += kBlock) {
      const uint32_t k = at / kTile, c = at % kTile, r = begin + k;
      const uint32_t m = mine.row0 + c, n = mine.col0 + c;
      const bool real = r < last;
      float one = 0;
      if (real && m < table.a.cols) one = Widen(table.a.Row(r)[m]);
      if (real && table.ones && m == table.a.cols) one = 1;
      shared.a[k][c] = one;
      shared.g[k][c] = real && n < table.g.cols ? Widen(table.g.Row(r)[n]) : 0.0f;
    }
    SyncBlock();
    for (uint32_t k = 0; k < kDepth; ++k) TACIT_UNROLL
    for (uint32_t i = 0; i < kEach; ++i) TACIT_UNROLL
    for (uint32_t j = 0; j < kEach; ++j)
      tile[i][j] = Fma(shared.a[k][mine.row - mine.row0 + i], shared.g[k][mine.col - mine.col0 + j],
                       tile[i][j]);
    SyncBlock();
  }
  AddPlaced(table.own, unit, mine, table.cols, tile);
  AddPlaced(table.input, unit, mine, table.cols, tile);
}

template <class T>
TACIT_KERNEL NormsKernel(UnitTable<T> table, DeviceSpan<double> work) {
  Tiles& shared = SharedAs<Tiles>();
  const uint32_t unit = BlockIndex().z;
  const Mine mine = MineOf(BlockIndex().y, BlockIndex().x);
  float tile[kEach][kEach];
  Form(table, unit, mine, shared, tile);
  double squared = 0;
  for (uint32_t i = 0; i < kEach; ++i)
    for (uint32_t j = 0; j < kEach; ++j)
      if (mine.row + i < table.rows && mine.col + j < table.cols)
        squared = Fma(double{tile[i][j]}, double{tile[i][j]}, squared);
  squared = BlockSum(squared, shared.of_warp);
  const uint64_t tiles = uint64_t{GridSize().x} * GridSize().y;
  if (ThreadIndex().x == 0)
    work[unit * tiles + BlockIndex().y * GridSize().x + BlockIndex().x] = squared;
}

TACIT_KERNEL AddTilesKernel(DeviceSpan<const double> work, uint64_t tiles,
                            DeviceSpan<double> squared) {
  const uint64_t u = GlobalThread();
  if (u >= squared.size) return;
  double sum = squared[u];
  for (uint64_t t = 0; t < tiles; ++t) sum += work[u * tiles + t];
  squared[u] = sum;
}

template <class T>
TACIT_KERNEL SumsKernel(UnitTable<T> table, DeviceSpan<const float> scale, double per_step,
                        DeviceSpan<int64_t> sums) {
  Tiles& shared = SharedAs<Tiles>();
  const Mine mine = MineOf(BlockIndex().y, BlockIndex().x);
  int64_t steps[kEach][kEach] = {};
  for (uint32_t unit = 0; unit < scale.size; ++unit) {
    if (scale[unit] == 0) continue;
    const auto factor = static_cast<float>(scale[unit] * per_step);
    float tile[kEach][kEach];
    Form(table, unit, mine, shared, tile);
    TACIT_UNROLL
    for (uint32_t i = 0; i < kEach; ++i) TACIT_UNROLL
    for (uint32_t j = 0; j < kEach; ++j)
      steps[i][j] += mechanism::Nearest(double{factor * tile[i][j]});
  }
  for (uint32_t i = 0; i < kEach; ++i)
    for (uint32_t j = 0; j < kEach; ++j)
      if (mine.row + i < table.rows && mine.col + j < table.cols)
        sums[uint64_t{mine.row + i} * table.cols + mine.col + j] += steps[i][j];
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
  int64_t steps = sums[c];
  for (uint32_t u = 0; u < gradients.rows; ++u) {
    if (scale[u] == 0) continue;
    const auto factor = static_cast<float>(scale[u] * per_step);
    steps += mechanism::Nearest(double{factor * gradients.Row(u)[c]});
  }
  sums[c] = steps;
}

uint32_t TilesOf(uint32_t n) { return (n + kTile - 1) / kTile; }

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
  }
  CheckPlaced(table.own, table.cols, units);
  CheckPlaced(table.input, table.cols, units);
}

}  // namespace

size_t UnitTableWork(uint32_t rows, uint32_t cols, size_t units) {
  return size_t{TilesOf(rows)} * TilesOf(cols) * units;
}

template <class T>
Status AddUnitTableNorms(Stream& stream, const UnitTable<T>& table, DeviceSpan<double> work,
                         DeviceSpan<double> squared) {
  const size_t units = squared.size;
  CheckTable(table, units);
  TACIT_CHECK(work.size >= UnitTableWork(table.rows, table.cols, units), "too little work");
  if (units == 0 || table.rows == 0 || table.cols == 0) return {};
  const uint32_t down = TilesOf(table.rows), across = TilesOf(table.cols);
  TACIT_RETURN_IF_ERROR(Launch(stream, "UnitTableNorms",
                               {.grid = {across, down, static_cast<uint32_t>(units)},
                                .block = {kBlock},
                                .shared_bytes = sizeof(Tiles)},
                               NormsKernel<T>, table, work));
  return Launch(
      stream, "AddTiles",
      {.grid = BlocksFor(units, kVectorBlock), .block = {kVectorBlock}, .shared_bytes = 0},
      AddTilesKernel, work, uint64_t{down} * across, squared);
}

template <class T>
Status AddUnitTables(Stream& stream, const UnitTable<T>& table, DeviceSpan<const float> scale,
                     double step, DeviceSpan<int64_t> sums) {
  CheckTable(table, scale.size);
  TACIT_CHECK(sums.size == uint64_t{table.rows} * table.cols && step > 0);
  if (scale.size == 0 || sums.size == 0) return {};
  return Launch(stream, "UnitTables",
                {.grid = {TilesOf(table.cols), TilesOf(table.rows)},
                 .block = {kBlock},
                 .shared_bytes = sizeof(Tiles)},
                SumsKernel<T>, table, scale, 1 / step, sums);
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
  return Launch(
      stream, "UnitVectors",
      {.grid = BlocksFor(sums.size, kVectorBlock), .block = {kVectorBlock}, .shared_bytes = 0},
      VectorSumsKernel, gradients, scale, 1 / step, sums);
}

#define TACIT_UNIT_TILES(T)                                                                       \
  template Status AddUnitTableNorms<T>(Stream&, const UnitTable<T>&, DeviceSpan<double>,          \
                                       DeviceSpan<double>);                                       \
  template Status AddUnitTables<T>(Stream&, const UnitTable<T>&, DeviceSpan<const float>, double, \
                                   DeviceSpan<int64_t>)
TACIT_UNIT_TILES(float);
TACIT_UNIT_TILES(uint16_t);
#undef TACIT_UNIT_TILES

}  // namespace tacit::cuda
