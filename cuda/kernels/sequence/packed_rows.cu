// Rows that are moved, a thread a number.
//   bytes:      4 or 8 read and 4 written a number, in pieces of a row
//   operations: one or two a number
// Memory bounds all: 200,000 rows of 64 numbers are 150 MB at most, 50 us at 3 TB/s. Forecast: 60
// us a kernel. Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/sequence/packed_rows.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 256;

struct Number {
  uint64_t row;
  uint32_t col;
};
TACIT_IN_KERNEL Number Mine(uint32_t cols) {
  const uint64_t i = GlobalThread();
  return {i / cols, static_cast<uint32_t>(i % cols)};
}

TACIT_KERNEL EmbedKernel(DeviceSpan<const uint32_t> item, DeviceMatrix<const float> items,
                         float scale, DeviceSpan<const uint32_t> position,
                         DeviceMatrix<const float> positions, DeviceMatrix<float> out) {
  const Number at = Mine(out.cols);
  if (at.row >= out.rows) return;
  out.Row(at.row)[at.col] =
      scale * items.Row(item[at.row])[at.col] + positions.Row(position[at.row])[at.col];
}
TACIT_KERNEL AddKernel(DeviceMatrix<const float> from, DeviceMatrix<float> to) {
  const Number at = Mine(to.cols);
  if (at.row < to.rows) to.Row(at.row)[at.col] += from.Row(at.row)[at.col];
}
TACIT_KERNEL TakeKernel(DeviceMatrix<const float> from, DeviceSpan<const uint32_t> row,
                        DeviceMatrix<float> out) {
  const Number at = Mine(out.cols);
  if (at.row < out.rows) out.Row(at.row)[at.col] = from.Row(row[at.row])[at.col];
}
TACIT_KERNEL PutKernel(DeviceMatrix<const float> from, DeviceSpan<const uint32_t> row,
                       DeviceMatrix<float> to) {
  const Number at = Mine(from.cols);
  if (at.row < from.rows) to.Row(row[at.row])[at.col] = from.Row(at.row)[at.col];
}
TACIT_KERNEL NarrowKernel(DeviceSpan<const double> squared, DeviceSpan<float> out) {
  const uint64_t u = GlobalThread();
  if (u < out.size) out[u] = static_cast<float>(squared[u]);
}

template <class T>
runtime::LaunchShape Numbers(const DeviceMatrix<T>& x) {
  return {
      .grid = BlocksFor(uint64_t{x.rows} * x.cols, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

}  // namespace

Status EmbedRows(Stream& stream, DeviceSpan<const uint32_t> item, DeviceMatrix<const float> items,
                 float scale, DeviceSpan<const uint32_t> position,
                 DeviceMatrix<const float> positions, DeviceMatrix<float> out) {
  TACIT_CHECK(item.size == out.rows && position.size == out.rows && items.cols == out.cols &&
              positions.cols == out.cols && out.cols > 0);
  return Launch(stream, "EmbedRows", Numbers(out), EmbedKernel, item, items, scale, position,
                positions, out);
}
Status AddMatrix(Stream& stream, DeviceMatrix<const float> from, DeviceMatrix<float> to) {
  TACIT_CHECK(from.rows == to.rows && from.cols == to.cols && to.cols > 0);
  return Launch(stream, "AddMatrix", Numbers(to), AddKernel, from, to);
}
Status TakeRows(Stream& stream, DeviceMatrix<const float> from, DeviceSpan<const uint32_t> row,
                DeviceMatrix<float> out) {
  TACIT_CHECK(row.size == out.rows && from.cols == out.cols && out.cols > 0);
  return Launch(stream, "TakeRows", Numbers(out), TakeKernel, from, row, out);
}
Status PutRows(Stream& stream, DeviceMatrix<const float> from, DeviceSpan<const uint32_t> row,
               DeviceMatrix<float> to) {
  TACIT_CHECK(row.size == from.rows && from.cols == to.cols && to.cols > 0);
  return Launch(stream, "PutRows", Numbers(from), PutKernel, from, row, to);
}
Status NarrowNorms(Stream& stream, DeviceSpan<const double> squared, DeviceSpan<float> out) {
  TACIT_CHECK(squared.size == out.size);
  return Launch(stream, "NarrowNorms",
                {.grid = BlocksFor(out.size, kBlock), .block = {kBlock}, .shared_bytes = 0},
                NarrowKernel, squared, out);
}

}  // namespace tacit::cuda
