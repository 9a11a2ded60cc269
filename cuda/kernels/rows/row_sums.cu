// Norms and sums of row gradients. RowNorms: a warp a unit, a lane an entry;
// AddRowSums: 16 lanes an entry.
//   bytes:      per entry 17 of bookkeeping and 4 dim of the input gradient; AddRowSums 8 dim of
//               atomics beside
//   operations: two or three a number in double
// Memory bounds RowNorms (53,000 entries of dim 16: 4 MB), the atomics of the second-level cache
// AddRowSums (850,000 of them, of which popular rows get many). Measured on an H200 for
// 426,000 entries: 25 and 70 us. Integer sums do not depend on the order. Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/reduce.h"
#include "cuda/kernels/rows/row_sums.h"
#include "mechanism/nearest.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128, kLanesPerEntry = 16;

// The columns of an entry's row in the input gradient.
TACIT_IN_KERNEL const float* ColumnsOf(const StepRows& rows, uint32_t e) {
  const uint32_t cell = rows.cell[e], slots = rows.entries.slots;
  return rows.input_gradient.Row(cell / slots - rows.first_example) +
         rows.slots[cell % slots].column;
}

// Calls body(number) for the numbers `c`, c + step, ... of the gradient of entry e's row in e's
// unit. REQUIRES that e is the row's first.
template <class Body>
TACIT_IN_KERNEL void ForNumbers(const StepRows& rows, uint32_t e, uint32_t c, uint32_t step,
                                uint32_t dim, const Body& body) {
  const float* const first = ColumnsOf(rows, e);
  const uint32_t second = rows.next[e];
  for (; c < dim; c += step) {
    double sum = first[c];
    for (uint32_t other = second; other != kNone; other = rows.next[other])
      sum += double{ColumnsOf(rows, other)[c]};
    body(c, sum);
  }
}

TACIT_IN_KERNEL bool IsKeptFirst(const StepRows& rows, uint32_t e) {
  return rows.entries.row[e] != kNone && rows.first[e] != 0 && rows.kept[rows.place[e]] != 0;
}
TACIT_IN_KERNEL uint32_t DimOf(const StepRows& rows, uint32_t e) {
  return rows.slots[rows.cell[e] % rows.entries.slots].dim;
}

TACIT_KERNEL NormsKernel(StepRows rows, DeviceSpan<float> squared, DeviceSpan<uint32_t> numbers) {
  const uint64_t mine = GlobalThread() / kWarp, unit = rows.first_unit + mine;
  if (mine >= squared.size) return;
  const StepEntries& of = rows.entries;
  const auto end = [&](uint32_t example) {
    return example == 0 || of.slots == 0 ? 0 : of.cell_end[uint64_t{example} * of.slots - 1];
  };
  const uint32_t last = end(of.example_end[unit]);
  double sum = 0;
  uint32_t count = 0;
  // Entries of an example lie side by side in the gradient, so lanes read one piece together.
  for (uint32_t e = end(unit == 0 ? 0 : of.example_end[unit - 1]) + LaneIndex(); e < last;
       e += kWarp) {
    if (!IsKeptFirst(rows, e)) continue;
    const uint32_t dim = DimOf(rows, e);
    ForNumbers(rows, e, 0, 1, dim,
               [&](uint32_t, double number) { sum = Fma(number, number, sum); });
    count += dim;
  }
  sum = WarpSum(sum);
  count = WarpSum(count);
  if (LaneIndex() != 0) return;
  squared[mine] = static_cast<float>(sum);
  numbers[mine] = count;
}

TACIT_KERNEL SumsKernel(StepRows rows, DeviceSpan<const float> scale, double per_step,
                        uint32_t stride, DeviceSpan<int64_t> sums) {
  const uint64_t e = GlobalThread() / kLanesPerEntry;
  if (e >= rows.entries_count) return;
  const uint32_t entry = rows.first_entry + static_cast<uint32_t>(e);
  if (!IsKeptFirst(rows, entry)) return;
  const double factor =
      double{scale[rows.cell[entry] / rows.entries.slots - rows.first_example]} * per_step;
  int64_t* const to = &sums[uint64_t{rows.rank[rows.place[entry]]} * stride];
  const uint32_t dim = DimOf(rows, entry);
  ForNumbers(
      rows, entry, ThreadIndex().x % kLanesPerEntry, kLanesPerEntry, dim,
      [&](uint32_t c, double number) { AtomicAdd(&to[c], mechanism::Nearest(number * factor)); });
}

void CheckRows(const StepRows& rows) {
  const size_t n = rows.entries.row.size;
  TACIT_CHECK(rows.cell.size == n && rows.next.size == n && rows.first.size == n &&
                  rows.place.size == n && rows.slots.size == rows.entries.slots &&
                  rows.kept.size == rows.rank.size,
              "a step's rows are all known");
}

}  // namespace

Status RowNorms(Stream& stream, const StepRows& rows, DeviceSpan<float> squared,
                DeviceSpan<uint32_t> numbers) {
  CheckRows(rows);
  TACIT_CHECK(rows.first_unit + squared.size <= rows.entries.example_end.size &&
              numbers.size == squared.size);
  return Launch(
      stream, "RowNorms",
      {.grid = BlocksFor(squared.size * kWarp, kBlock), .block = {kBlock}, .shared_bytes = 0},
      NormsKernel, rows, squared, numbers);
}

Status AddRowSums(Stream& stream, const StepRows& rows, DeviceSpan<const float> scale, double step,
                  uint32_t stride, DeviceSpan<int64_t> sums) {
  CheckRows(rows);
  TACIT_CHECK(scale.size == rows.input_gradient.rows && step > 0);
  TACIT_CHECK(uint64_t{rows.first_entry} + rows.entries_count <= rows.entries.row.size);
  return Launch(stream, "AddRowSums",
                {.grid = BlocksFor(uint64_t{rows.entries_count} * kLanesPerEntry, kBlock),
                 .block = {kBlock},
                 .shared_bytes = 0},
                SumsKernel, rows, scale, 1 / step, stride, sums);
}

}  // namespace tacit::cuda
