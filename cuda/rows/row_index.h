#pragma once

#include <cstdint>

#include "base/device.h"
#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/row_places.h"
#include "cuda/kernels/rows/ranks.h"

// The index of a cache of rows: buckets of 128 places, each row at home in one bucket, which one
// warp fills. There are no locks and no retries, so what is where is a function of what was asked,
// with any order of threads.
namespace tacit::cuda {

inline constexpr uint32_t kBucketPlaces = 128;

// A table of the cache. Tables whose rows are equally long are a *family* and share its buckets.
struct CachedTable {
  uint32_t first = 0, rows = 0;          // its rows' numbers
  uint32_t before = 0;                   // the family's rows before this table's
  uint32_t first_bucket = 0, count = 0;  // the family's buckets
  // There is a place for each of the family's rows, in their order: none is ever evicted.
  bool holds_all = false;
};

// Digests of 16 neighbouring places' rows, a byte each; 0 where there is none.
struct alignas(16) Digests {
  uint32_t words[4];
};

// The index as kernels see it. A place's name is 128 * bucket + place. Ages are complements of
// ticks (cached_rows.h): of two places the one with the larger age was used longer ago, and an
// empty one's is kNone.
struct RowIndex {
  DeviceSpan<const CachedTable> tables = {};
  DeviceSpan<Digests> digests = {};
  DeviceSpan<uint32_t> row = {}, age = {};  // per place
};

// A permutation of 32 bits that spreads neighbours.
TACIT_DEVICE inline uint32_t SpreadBits(uint32_t x) {
  x = (x ^ x >> 16) * 0x9e3779b1u;
  x = (x ^ x >> 15) * 0x85ebca77u;
  return x ^ x >> 16;
}
TACIT_DEVICE inline uint32_t DigestOf(uint32_t row) { return 1 + SpreadBits(row) % 255; }

// The bucket of a row, counted over all families. REQUIRES a row of the tables.
TACIT_DEVICE inline uint32_t BucketOf(const CachedTable* tables, uint32_t row) {
  uint32_t t = 0;
  while (row - tables[t].first >= tables[t].rows) ++t;
  const CachedTable& table = tables[t];
  const uint32_t number = row - table.first + table.before;
  if (table.holds_all) return table.first_bucket + number / kBucketPlaces;
  const uint64_t spread = SpreadBits(number ^ 0x5bd1e995u);
  return table.first_bucket + static_cast<uint32_t>(spread * table.count >> 32);
}

// name[i] = the place of row[i], which gets this age; or kNone, and missing[i] = 1. REQUIRES an age
// that is smaller than all before.
Status FindRows(Stream& stream, const RowIndex& index, DeviceSpan<const uint32_t> row, uint32_t age,
                DeviceSpan<uint32_t> name, DeviceSpan<uint8_t> missing);

// Rows that are to get a place: distinct, not in the index, those of a bucket side by side.
struct RowsToPlace {
  DeviceSpan<const uint32_t> row = {};
  DeviceSpan<const uint32_t> first = {};  // per bucket: where its rows begin
  uint32_t age = 0;
  uint32_t in_use = 0;  // places of this age and smaller ones keep their rows
};
// Gives each row, in order, the place of its bucket that was used longest ago, the first of equals,
// among those that are not in use and not `changed` (flags of names). name[i] = it, or kNone where
// there is none.
Status PlaceRows(Stream& stream, const RowIndex& index, const RowsToPlace& rows,
                 DeviceSpan<const uint8_t> changed, DeviceSpan<uint32_t> name);

// name[i] = sorted_name[j] where row[i] = sorted[j], for i that are `missing`. REQUIRES that each
// is one of `sorted`, which ascends.
Status NameMissing(Stream& stream, DeviceSpan<const uint32_t> row,
                   DeviceSpan<const uint8_t> missing, DeviceSpan<const uint32_t> sorted,
                   DeviceSpan<const uint32_t> sorted_name, DeviceSpan<uint32_t> name);

// Names and rows of the places from `first` on whose flag is set, by the flags' ranks.
Status ListChanged(Stream& stream, const RowIndex& index, uint32_t first,
                   DeviceSpan<const uint8_t> changed, DeviceSpan<const uint32_t> rank,
                   DeviceSpan<uint32_t> row, DeviceSpan<uint32_t> name);

// Rows on their way between their places and the host: row i has `stride` floats, embedding and
// state, and zeros behind them.
struct RowTransfer {
  DeviceSpan<const uint32_t> row = {}, name = {};
  uint32_t stride = 0;
  DeviceSpan<float> floats = {};
};
Status UnpackRows(Stream& stream, const RowPlaces& places, const RowTransfer& transfer);
Status PackRows(Stream& stream, const RowPlaces& places, const RowTransfer& transfer);

// sound[0] = 0 if one of the floats is no number, or larger than `most`; else not 0.
Status FindNoNumbers(Stream& stream, DeviceSpan<const float> floats, float most,
                     DeviceSpan<uint32_t> sound);

}  // namespace tacit::cuda
