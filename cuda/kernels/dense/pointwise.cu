// Loops over matrices, a thread eight neighbouring numbers; blocks of 64 columns and 32 rows.
//   bytes:      each number read once and written once: 4 + 4, 4 + 2 or 2 + 2
//   operations: one or two a number; LogisticLoss some 60 in double
// Memory bounds all of them. Measured on an H200, 16,384 x 598: AddBias 17 us, ReluBackward 21,
// both 85 % of the copy bandwidth. ColumnSums is for the contract and goes down each column alone.
// Registers: README.md.
#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/dense/pointwise.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/vector.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kEach = 8;  // neighbouring columns of a thread
constexpr uint32_t kColumns = 64, kRows = 32, kBlock = 256;
static_assert(kColumns / kEach * kRows == kBlock);
constexpr uint32_t kGridRowsMax = 65535;

// Calls body(row, first column) for the numbers of this thread, kEach columns at a time.
template <class Body>
TACIT_IN_KERNEL void ForMine(uint32_t rows, uint32_t cols, const Body& body) {
  const uint32_t c = BlockIndex().x * kColumns + ThreadIndex().x * kEach;
  if (c >= cols) return;
  for (uint32_t r = BlockIndex().y * kRows + ThreadIndex().y; r < rows; r += GridSize().y * kRows)
    body(r, c);
}

// out's numbers from column c on: what `of` makes of each one's place among the kEach.
template <class T, class Of>
TACIT_IN_KERNEL void Put(const DeviceMatrix<T>& out, uint32_t r, uint32_t c, const Of& of) {
  Vector<T, kEach> y;
  TACIT_UNROLL
  for (uint32_t i = 0; i < kEach; ++i) Narrow(of(i), &y.x[i]);
  StoreVector(y, out.cols - c, out.Row(r) + c);
}
template <class T>
TACIT_IN_KERNEL Vector<std::remove_const_t<T>, kEach> Get(const DeviceMatrix<T>& x, uint32_t r,
                                                          uint32_t c) {
  return LoadVector<kEach>(x.Row(r) + c, x.cols > c ? x.cols - c : 0);
}

template <class T>
TACIT_KERNEL AddBiasKernel(DeviceMatrix<const float> x, DeviceSpan<const float> bias, bool relu,
                           DeviceMatrix<T> out) {
  ForMine(x.rows, out.cols, [&](uint32_t r, uint32_t c) {
    const auto from = Get(x, r, c);
    Vector<float, kEach> of_bias = {};
    if (bias.size > 0 && c < x.cols) of_bias = LoadVector<kEach>(bias.data + c, x.cols - c);
    Put(out, r, c, [&](uint32_t i) {
      if (c + i == x.cols) return 1.0f;
      const float y = bias.size == 0 ? from.x[i] : from.x[i] + of_bias.x[i];
      return relu && y < 0 ? 0.0f : y;
    });
  });
}

template <class T>
TACIT_KERNEL RoundKernel(MatrixList<const float> x, MatrixList<T> out) {
  const uint32_t which = BlockIndex().z;
  ForMine(x.at[which].rows, x.at[which].cols, [&](uint32_t r, uint32_t c) {
    const auto from = Get(x.at[which], r, c);
    Put(out.at[which], r, c, [&](uint32_t i) { return from.x[i]; });
  });
}

template <class T>
TACIT_KERNEL ReluBackwardKernel(DeviceMatrix<const T> activation, DeviceMatrix<const float> grad,
                                DeviceMatrix<T> out) {
  ForMine(grad.rows, grad.cols, [&](uint32_t r, uint32_t c) {
    const auto of_grad = Get(grad, r, c);
    const auto active = Get(activation, r, c);
    Put(out, r, c, [&](uint32_t i) { return Widen(active.x[i]) <= 0 ? 0.0f : of_grad.x[i]; });
  });
}

template <class T>
TACIT_KERNEL ScaleRowsKernel(DeviceSpan<const float> scales, MatrixList<const T> xs,
                             MatrixList<T> outs) {
  const uint32_t which = BlockIndex().z;
  const DeviceMatrix<const T> x = xs.at[which];
  const DeviceMatrix<T> out = outs.at[which];
  const float* const scale = scales.data + uint64_t{which} * x.rows;
  ForMine(x.rows, x.cols, [&](uint32_t r, uint32_t c) {
    const auto from = Get(x, r, c);
    const float factor = scale[r];
    Put(out, r, c, [&](uint32_t i) { return factor * Widen(from.x[i]); });
  });
}

TACIT_KERNEL LogisticLossKernel(DeviceSpan<const float> logit, DeviceSpan<const float> label,
                                DeviceSpan<float> loss, DeviceSpan<float> dlogit) {
  const uint64_t i = GlobalThread();
  if (i >= logit.size) return;
  const double x = logit[i];
  const double e = Exp(-Abs(x));
  const double positive = x > 0 ? x : (x <= 0 ? 0 : x);  // a NaN stays one
  loss[i] = static_cast<float>(positive - x * label[i] + Log1p(e));
  dlogit[i] = static_cast<float>((x >= 0 ? 1 : e) / (1 + e) - label[i]);
}

TACIT_KERNEL ColumnSumsKernel(DeviceMatrix<const float> x, DeviceSpan<float> out) {
  const uint64_t c = GlobalThread();
  if (c >= x.cols) return;
  float sum = out[c];
  for (uint32_t r = 0; r < x.rows; ++r) sum += x.Row(r)[c];
  out[c] = sum;
}

runtime::LaunchShape Numbers(uint32_t rows, uint32_t cols, uint32_t matrices = 1) {
  const uint32_t down = std::min((rows + kRows - 1) / kRows, kGridRowsMax);
  return {.grid = {std::max(1u, (cols + kColumns - 1) / kColumns), std::max(1u, down), matrices},
          .block = {kColumns / kEach, kRows},
          .shared_bytes = 0};
}
runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

template <class T, class U>
void CheckSameShape(const DeviceMatrix<T>& x, const DeviceMatrix<U>& y) {
  TACIT_CHECK(x.rows == y.rows && x.cols == y.cols, "shapes differ");
}

}  // namespace

template <class T>
Status AddBias(Stream& stream, DeviceMatrix<const float> x, DeviceSpan<const float> bias, bool relu,
               DeviceMatrix<T> out) {
  TACIT_CHECK(x.rows == out.rows && (x.cols == out.cols || x.cols + 1 == out.cols),
              "shapes differ");
  TACIT_CHECK(bias.size == 0 || bias.size == x.cols, "one bias per column");
  return Launch(stream, "AddBias", Numbers(x.rows, out.cols), AddBiasKernel<T>, x, bias, relu, out);
}

Status RoundAll(Stream& stream, const MatrixList<const float>& x, const MatrixList<uint16_t>& out) {
  TACIT_CHECK(x.count == out.count);
  for (uint32_t i = 0; i < x.count; ++i) CheckSameShape(x.at[i], out.at[i]);
  if (x.count == 0) return {};
  return Launch(stream, "RoundAll", Numbers(x.rows_max(), x.cols_max(), x.count),
                RoundKernel<uint16_t>, x, out);
}

template <class T>
Status ReluBackward(Stream& stream, DeviceMatrix<const T> activation,
                    DeviceMatrix<const float> grad, DeviceMatrix<T> out) {
  CheckSameShape(activation, grad);
  CheckSameShape(grad, out);
  return Launch(stream, "ReluBackward", Numbers(grad.rows, grad.cols), ReluBackwardKernel<T>,
                activation, grad, out);
}

template <class T>
Status ScaleRows(Stream& stream, DeviceSpan<const float> scale, const MatrixList<const T>& x,
                 const MatrixList<T>& out) {
  TACIT_CHECK(x.count == out.count && x.count > 0);
  for (uint32_t i = 0; i < x.count; ++i) {
    CheckSameShape(x.at[i], out.at[i]);
    TACIT_CHECK(x.at[i].rows == x.at[0].rows, "equally many rows");
  }
  TACIT_CHECK(scale.size == uint64_t{x.count} * x.at[0].rows, "one scale per row");
  return Launch(stream, "ScaleRows", Numbers(x.at[0].rows, x.cols_max(), x.count),
                ScaleRowsKernel<T>, scale, x, out);
}

Status LogisticLoss(Stream& stream, DeviceSpan<const float> logit, DeviceSpan<const float> label,
                    DeviceSpan<float> loss, DeviceSpan<float> dlogit) {
  TACIT_CHECK(label.size == logit.size && loss.size == logit.size && dlogit.size == logit.size,
              "one label per logit");
  return Launch(stream, "LogisticLoss", Threads(logit.size), LogisticLossKernel, logit, label, loss,
                dlogit);
}

Status ColumnSums(Stream& stream, DeviceMatrix<const float> x, DeviceSpan<float> out) {
  TACIT_CHECK(out.size == x.cols, "one sum per column");
  return Launch(stream, "ColumnSums", Threads(x.cols), ColumnSumsKernel, x, out);
}

#define TACIT_POINTWISE(T)                                                                      \
  template Status AddBias<T>(Stream&, DeviceMatrix<const float>, DeviceSpan<const float>, bool, \
                             DeviceMatrix<T>);                                                  \
  template Status ReluBackward<T>(Stream&, DeviceMatrix<const T>, DeviceMatrix<const float>,    \
                                  DeviceMatrix<T>);                                             \
  template Status ScaleRows<T>(Stream&, DeviceSpan<const float>, const MatrixList<const T>&,    \
                               const MatrixList<T>&)
TACIT_POINTWISE(float);
TACIT_POINTWISE(uint16_t);
#undef TACIT_POINTWISE

}  // namespace tacit::cuda
