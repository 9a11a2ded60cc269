// Squared norms in double. For matrices, a warp a row; for units of several rows, a block a unit;
// from squares that are there, a thread a row.
//   bytes:      each number once for rows; 8 a part of squares; for a unit of n rows each number up
//               to n times, out of the second-level cache
//   operations: one product and one addition in double a number; for a unit n^2 / 2 times as many,
//               or a.cols g.cols n where that is less
// Steps whose units have one row each are bound by memory. With both factors of five layers read
// again they took 76 us of a step of 16,384 on an H200; now products leave the squares of the wide
// ones, and the input is read: forecast 10 us, by 20 MB of it and 12 MB of squares.
// Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/dense/norms.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/reduce.h"
#include "cuda/kernels/parts/vector.h"
#include "ops/row_gradient_norm.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128, kWarps = kBlock / kWarp;

// <x, y>, the same in every lane. Products of two floats are exact in a double.
template <class T>
TACIT_IN_KERNEL double WarpDot(const T* x, const T* y, uint32_t cols) {
  constexpr uint32_t kEach = 8;
  double sum = 0;
  for (uint32_t c = LaneIndex() * kEach; c < cols; c += kWarp * kEach) {
    const auto of_x = LoadVector<kEach>(x + c, cols - c), of_y = LoadVector<kEach>(y + c, cols - c);
    TACIT_UNROLL
    for (uint32_t i = 0; i < kEach; ++i)
      sum = Fma(double{Widen(of_x.x[i])}, double{Widen(of_y.x[i])}, sum);
  }
  return WarpSum(sum);
}

TACIT_IN_KERNEL uint64_t GlobalWarp() { return GlobalThread() / kWarp; }

TACIT_KERNEL RowSquaredNormsKernel(DeviceMatrix<const float> x, DeviceSpan<float> out) {
  const uint64_t r = GlobalWarp();
  if (r >= x.rows) return;
  const double squared = WarpDot(x.Row(r), x.Row(r), x.cols);
  if (LaneIndex() == 0) out[r] = static_cast<float>(squared);
}

template <class T>
TACIT_KERNEL SquareRowsKernel(MatrixList<const T> xs, MatrixList<double> squares) {
  const uint32_t which = BlockIndex().y;
  const DeviceMatrix<const T> x = xs.at[which];
  const uint64_t r = GlobalWarp();
  if (r >= x.rows) return;
  const double squared = WarpDot(x.Row(r), x.Row(r), x.cols);
  if (LaneIndex() == 0) squares.at[which].data[r] = squared;
}

// Adds up the parts of a row.
TACIT_IN_KERNEL double SumOf(const DeviceMatrix<const double>& squares, uint64_t r) {
  double sum = 0;
  for (uint32_t part = 0; part < squares.rows; ++part) sum += squares.Row(part)[r];
  return sum;
}

TACIT_KERNEL RowGradientNormsKernel(MatrixList<const double> as, MatrixList<const double> gs,
                                    DeviceSpan<double> own) {
  const uint32_t which = BlockIndex().y, rows = as.at[which].cols;
  const uint64_t r = GlobalThread();
  if (r >= rows) return;
  own[uint64_t{which} * rows + r] =
      ops::RowGradientNorm(SumOf(as.at[which], r), SumOf(gs.at[which], r));
}

struct alignas(16) Scratch {
  double of_warp[kWarps];
};

// |A^T G|^2 of rows [first, last), from the gradient itself, each of whose numbers one thread
// forms.
template <class T>
TACIT_IN_KERNEL double FormedNorm(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& g,
                                  uint32_t first, uint32_t last, Scratch& scratch) {
  double squared = 0;
  const uint64_t numbers = uint64_t{a.cols} * g.cols;
  for (uint64_t at = ThreadIndex().x; at < numbers; at += kBlock) {
    const uint64_t i = at / g.cols, j = at % g.cols;
    double sum = 0;
    for (uint32_t r = first; r < last; ++r)
      sum = Fma(double{Widen(a.Row(r)[i])}, double{Widen(g.Row(r)[j])}, sum);
    squared = Fma(sum, sum, squared);
  }
  return BlockSum(squared, scratch.of_warp);
}

// The same from products of pairs of rows; the warps share the pairs.
template <class T>
TACIT_IN_KERNEL double PairsNorm(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& g,
                                 const DeviceSpan<const double>& own, uint32_t first, uint32_t last,
                                 Scratch& scratch) {
  double sum = 0;
  for (uint32_t s = first + 1; s < last; ++s)
    for (uint32_t t = first + WarpIndex(); t < s; t += kWarps)
      sum += 2 * WarpDot(a.Row(s), a.Row(t), a.cols) * WarpDot(g.Row(s), g.Row(t), g.cols);
  // Each lane has its warp's sum, and one of them brings it.
  if (LaneIndex() != 0) sum = 0;
  for (uint32_t r = first + ThreadIndex().x; r < last; r += kBlock) sum += own[r];
  return BlockSum(sum, scratch.of_warp);
}

template <class T>
TACIT_KERNEL UnitNormsKernel(DeviceSpan<const uint32_t> unit_end, MatrixList<const T> as,
                             MatrixList<const T> gs, DeviceSpan<const double> all_own,
                             DeviceSpan<float> all_out) {
  Scratch& scratch = SharedAs<Scratch>();
  const uint32_t which = BlockIndex().y;
  const DeviceMatrix<const T> a = as.at[which], g = gs.at[which];
  const DeviceSpan<const double> own = all_own.Sub(uint64_t{which} * a.rows, a.rows);
  const DeviceSpan<float> out = all_out.Sub(uint64_t{which} * unit_end.size, unit_end.size);
  const uint32_t u = BlockIndex().x;
  const uint32_t first = u == 0 ? 0 : unit_end[u - 1], last = unit_end[u], rows = last - first;
  if (rows < 2) {
    if (ThreadIndex().x == 0) out[u] = rows == 0 ? 0.0f : static_cast<float>(own[first]);
    return;
  }
  // As on the CPU (ops/loops.h): a pair costs a.cols + g.cols products, forming the gradient
  // a.cols g.cols a row. If rows nearly cancel, the pairs' sum is a difference of large terms, and
  // a clip would let through what it does not see.
  const uint64_t ac = a.cols, gc = g.cols;
  double squared;
  if (ac + gc > 0 && rows > 2 * ac * gc / (ac + gc) + 1) {
    squared = FormedNorm(a, g, first, last, scratch);
  } else {
    squared = PairsNorm(a, g, own, first, last, scratch);
    double lengths = 0;
    for (uint32_t r = first + ThreadIndex().x; r < last; r += kBlock) lengths += Sqrt(own[r]);
    lengths = BlockSum(lengths, scratch.of_warp);
    if (!(squared > 0x1p-18 * lengths * lengths)) squared = FormedNorm(a, g, first, last, scratch);
  }
  if (ThreadIndex().x == 0) out[u] = static_cast<float>(squared);
}

// The same for units of one row each at most.
TACIT_KERNEL OneRowNormsKernel(DeviceSpan<const uint32_t> unit_end, MatrixList<const double> as,
                               MatrixList<const double> gs, DeviceSpan<float> all_out) {
  const uint32_t which = BlockIndex().y;
  const uint64_t u = GlobalThread();
  if (u >= unit_end.size) return;
  const uint32_t first = u == 0 ? 0 : unit_end[u - 1];
  const double squared = unit_end[u] == first ? 0
                                              : ops::RowGradientNorm(SumOf(as.at[which], first),
                                                                     SumOf(gs.at[which], first));
  all_out[which * unit_end.size + u] = static_cast<float>(squared);
}

// A thread for each of n numbers, in each matrix.
runtime::LaunchShape Threads(uint64_t n, uint32_t matrices) {
  runtime::LaunchShape shape{.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
  shape.grid.y = matrices;
  return shape;
}
runtime::LaunchShape Warps(uint64_t n, uint32_t matrices) { return Threads(n * kWarp, matrices); }

// The rows of every pair of matrices, which have equally many.
template <class T>
uint32_t RowsOf(const MatrixList<const T>& a, const MatrixList<const T>& g) {
  TACIT_CHECK(a.count == g.count && a.count > 0);
  for (uint32_t i = 0; i < a.count; ++i)
    TACIT_CHECK(a.at[i].rows == a.at[0].rows && g.at[i].rows == a.at[0].rows,
                "one output gradient per input");
  return a.at[0].rows;
}
uint32_t RowsOf(const MatrixList<const double>& a_squares,
                const MatrixList<const double>& g_squares) {
  TACIT_CHECK(a_squares.count == g_squares.count && a_squares.count > 0);
  for (uint32_t i = 0; i < a_squares.count; ++i)
    TACIT_CHECK(a_squares.at[i].cols == a_squares.at[0].cols &&
                    g_squares.at[i].cols == a_squares.at[0].cols,
                "squares of one output gradient per input");
  return a_squares.at[0].cols;
}

}  // namespace

Status RowSquaredNorms(Stream& stream, DeviceMatrix<const float> x, DeviceSpan<float> out) {
  TACIT_CHECK(out.size == x.rows, "one norm per row");
  return Launch(stream, "RowSquaredNorms", Warps(x.rows, 1), RowSquaredNormsKernel, x, out);
}

template <class T>
Status SquareRows(Stream& stream, const MatrixList<const T>& x, const MatrixList<double>& squares) {
  TACIT_CHECK(x.count == squares.count);
  for (uint32_t i = 0; i < x.count; ++i)
    TACIT_CHECK(squares.at[i].rows == 1 && squares.at[i].cols == x.at[i].rows, "one part per row");
  if (x.count == 0) return {};
  return Launch(stream, "SquareRows", Warps(x.rows_max(), x.count), SquareRowsKernel<T>, x,
                squares);
}

Status RowGradientNorms(Stream& stream, const MatrixList<const double>& a_squares,
                        const MatrixList<const double>& g_squares, DeviceSpan<double> own) {
  const uint32_t rows = RowsOf(a_squares, g_squares);
  TACIT_CHECK(own.size == uint64_t{a_squares.count} * rows, "one norm per row");
  return Launch(stream, "RowGradientNorms", Threads(rows, a_squares.count), RowGradientNormsKernel,
                a_squares, g_squares, own);
}

Status OneRowNorms(Stream& stream, DeviceSpan<const uint32_t> unit_end,
                   const MatrixList<const double>& a_squares,
                   const MatrixList<const double>& g_squares, DeviceSpan<float> out) {
  RowsOf(a_squares, g_squares);
  TACIT_CHECK(out.size == a_squares.count * unit_end.size, "one norm per unit");
  if (out.size == 0) return {};
  return Launch(stream, "OneRowNorms", Threads(unit_end.size, a_squares.count), OneRowNormsKernel,
                unit_end, a_squares, g_squares, out);
}

template <class T>
Status UnitSquaredNorms(Stream& stream, DeviceSpan<const uint32_t> unit_end,
                        const MatrixList<const T>& a, const MatrixList<const T>& g,
                        DeviceSpan<const double> own, DeviceSpan<float> out) {
  const uint32_t rows = RowsOf(a, g);
  TACIT_CHECK(own.size == uint64_t{a.count} * rows, "one norm per row");
  TACIT_CHECK(unit_end.size * a.count == out.size && out.size < uint64_t{1} << 31,
              "one norm per unit");
  if (out.size == 0) return {};
  return Launch(stream, "UnitSquaredNorms",
                {.grid = {static_cast<uint32_t>(unit_end.size), a.count},
                 .block = {kBlock},
                 .shared_bytes = sizeof(Scratch)},
                UnitNormsKernel<T>, unit_end, a, g, own, out);
}

#define TACIT_NORMS(T)                                                                           \
  template Status SquareRows<T>(Stream&, const MatrixList<const T>&, const MatrixList<double>&); \
  template Status UnitSquaredNorms<T>(Stream&, DeviceSpan<const uint32_t>,                       \
                                      const MatrixList<const T>&, const MatrixList<const T>&,    \
                                      DeviceSpan<const double>, DeviceSpan<float>)
TACIT_NORMS(float);
TACIT_NORMS(uint16_t);
#undef TACIT_NORMS

}  // namespace tacit::cuda
