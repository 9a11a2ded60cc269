#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// Units' gradients of a table, none of which is ever stored: each is formed a tile at a time, once
// for its norm and once more for the clipped sum. T is float or uint16_t, a bf16.
namespace tacit::cuda {

// Rows that a unit adds to single rows of the table: factor[r] * from[r] to row place[r], and
// nothing where that is kNone. All factors are `each` where there are none.
template <class T>
struct PlacedRows {
  DeviceSpan<const uint32_t> unit_end = {};  // per unit: the end of its rows; may be empty
  DeviceSpan<const uint32_t> place = {};
  DeviceMatrix<const T> from = {};
  DeviceSpan<const float> factor = {};
  float each = 1;
};

// A unit's gradient: a^T g over the unit's rows, and the placed rows. In bf16 rows of a and g begin
// at multiples of 16 bytes.
template <class T>
struct UnitTable {
  uint32_t rows = 0, cols = 0;               // of the table
  DeviceSpan<const uint32_t> unit_end = {};  // per unit: the end of its rows in a and g
  DeviceMatrix<const T> a = {}, g = {};      // without columns: there is no product
  bool ones = false;  // the table has one row more than `a` columns, the sum of g: the biases
  PlacedRows<T> own = {};
  PlacedRows<float> input = {};
  DeviceSpan<int64_t> sums = {};  // a number each of the table's, as steps
};

// The numbers of working memory that norms want.
template <class T>
size_t UnitTableWork(std::span<const UnitTable<T>> tables, size_t units);

// squared[u] += |gradient of unit u|^2, over all tables.
template <class T>
Status AddUnitTableNorms(Stream& stream, std::span<const UnitTable<T>> tables,
                         DeviceSpan<double> work, DeviceSpan<double> squared);
// Adds the units' gradients times scale[u] / step to the tables' sums, each number of each unit
// rounded once. A unit whose scale is 0 is not looked at.
template <class T>
Status AddUnitTables(Stream& stream, std::span<const UnitTable<T>> tables,
                     DeviceSpan<const float> scale, double step);

// The same for gradients that lie in memory, a row a unit.
Status AddUnitVectorNorms(Stream& stream, DeviceMatrix<const float> gradients,
                          DeviceSpan<double> squared);
Status AddUnitVectors(Stream& stream, DeviceMatrix<const float> gradients,
                      DeviceSpan<const float> scale, double step, DeviceSpan<int64_t> sums);

}  // namespace tacit::cuda
