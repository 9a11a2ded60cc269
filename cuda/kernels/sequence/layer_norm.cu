// Rows of a sequence model, a warp each; units' gradients of gains and biases, a thread a column.
//   bytes:      LayerNorm 4 read and 8 written a number, out of the first-level cache the second
//               time, 4 more read with a sum before it and 2 more written with a factor behind it;
//               LayerNormBackward 8 read and 4 written, and 2 with a factor; the units' gradients 8
//               read. As loops the sum takes 12 and the factor 6
//   operations: some 6 a number in double
// Memory bounds all: 1,000 units of 200 rows of 64 numbers are 51 MB, 0.05 ms a kernel at 3 TB/s.
// A layer has two. Forecast: 60 us each. Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/reduce.h"
#include "cuda/kernels/sequence/layer_norm.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128, kColumns = 64;

TACIT_KERNEL NormKernel(DeviceMatrix<const float> x, DeviceSpan<const float> gain,
                        DeviceSpan<const float> bias, float epsilon, DeviceMatrix<float> normal,
                        DeviceSpan<float> inverse, DeviceMatrix<float> out, AlongNorm along) {
  const uint64_t r = GlobalThread() / kWarp;
  if (r >= x.rows) return;
  const double n = x.cols;
  const auto at = [&](uint32_t c) {
    return along.plus.data == nullptr ? x.Row(r)[c] : x.Row(r)[c] + along.plus.Row(r)[c];
  };
  double sum = 0;
  for (uint32_t c = LaneIndex(); c < x.cols; c += kWarp) sum += at(c);
  const double mean = WarpSum(sum) / n;
  double squares = 0;
  for (uint32_t c = LaneIndex(); c < x.cols; c += kWarp) {
    const double from = at(c) - mean;
    squares = Fma(from, from, squares);
  }
  const double factor = 1 / Sqrt(WarpSum(squares) / n + epsilon);
  if (LaneIndex() == 0) inverse[r] = static_cast<float>(factor);
  for (uint32_t c = LaneIndex(); c < x.cols; c += kWarp) {
    const double y = (at(c) - mean) * factor;
    const auto result = static_cast<float>(y * gain[c] + bias[c]);
    normal.Row(r)[c] = static_cast<float>(y);
    out.Row(r)[c] = result;
    if (along.rounded.data != nullptr) Narrow(result, along.rounded.Row(r) + c);
  }
}

TACIT_KERNEL UnitGradientsKernel(DeviceSpan<const uint32_t> unit_end,
                                 DeviceMatrix<const float> normal, DeviceMatrix<const float> grad,
                                 DeviceMatrix<float> out) {
  const uint32_t u = BlockIndex().y, c = BlockIndex().x * kColumns + ThreadIndex().x;
  if (c >= grad.cols) return;
  float of_gain = 0, of_bias = 0;
  for (uint32_t r = u == 0 ? 0 : unit_end[u - 1]; r < unit_end[u]; ++r) {
    const float g = grad.Row(r)[c];
    of_gain += g * normal.Row(r)[c];
    of_bias += g;
  }
  out.Row(u)[c] = of_gain;
  out.Row(u)[grad.cols + c] = of_bias;
}

TACIT_KERNEL BackwardKernel(DeviceMatrix<const float> normal, DeviceSpan<const float> inverse,
                            DeviceSpan<const float> gain, DeviceMatrix<float> grad,
                            DeviceMatrix<uint16_t> rounded) {
  const uint64_t r = GlobalThread() / kWarp;
  if (r >= grad.rows) return;
  const double n = grad.cols;
  double sum = 0, projection = 0;
  for (uint32_t c = LaneIndex(); c < grad.cols; c += kWarp) {
    const double g = double{grad.Row(r)[c]} * gain[c];
    sum += g;
    projection = Fma(g, double{normal.Row(r)[c]}, projection);
  }
  sum = WarpSum(sum) / n;
  projection = WarpSum(projection) / n;
  for (uint32_t c = LaneIndex(); c < grad.cols; c += kWarp) {
    const double g = double{grad.Row(r)[c]} * gain[c];
    const auto result = static_cast<float>(inverse[r] * (g - sum - normal.Row(r)[c] * projection));
    grad.Row(r)[c] = result;
    if (rounded.data != nullptr) Narrow(result, rounded.Row(r) + c);
  }
}

template <class T>
void CheckAlong(const DeviceMatrix<T>& one, const DeviceMatrix<const float>& x) {
  TACIT_CHECK(one.data == nullptr || (one.rows == x.rows && one.cols == x.cols), "shapes differ");
}

runtime::LaunchShape Warps(uint64_t n) {
  return {.grid = BlocksFor(n * kWarp, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

}  // namespace

Status LayerNorm(Stream& stream, DeviceMatrix<const float> x, DeviceSpan<const float> gain,
                 DeviceSpan<const float> bias, float epsilon, DeviceMatrix<float> normal,
                 DeviceSpan<float> inverse, DeviceMatrix<float> out, const AlongNorm& along) {
  TACIT_CHECK(gain.size == x.cols && bias.size == x.cols && inverse.size == x.rows);
  TACIT_CHECK(normal.rows == x.rows && normal.cols == x.cols && out.rows == x.rows &&
              out.cols == x.cols);
  CheckAlong(along.plus, x);
  CheckAlong(along.rounded, x);
  return Launch(stream, "LayerNorm", Warps(x.rows), NormKernel, x, gain, bias, epsilon, normal,
                inverse, out, along);
}

Status LayerNormUnitGradients(Stream& stream, DeviceSpan<const uint32_t> unit_end,
                              DeviceMatrix<const float> normal, DeviceMatrix<const float> grad,
                              DeviceMatrix<float> out) {
  TACIT_CHECK(normal.rows == grad.rows && normal.cols == grad.cols && out.rows == unit_end.size &&
              out.cols == 2 * grad.cols && out.rows < 65536);
  if (unit_end.size == 0) return {};
  return Launch(stream, "LayerNormUnitGradients",
                {.grid = {(grad.cols + kColumns - 1) / kColumns, out.rows},
                 .block = {kColumns},
                 .shared_bytes = 0},
                UnitGradientsKernel, unit_end, normal, grad, out);
}

Status LayerNormBackward(Stream& stream, DeviceMatrix<const float> normal,
                         DeviceSpan<const float> inverse, DeviceSpan<const float> gain,
                         DeviceMatrix<float> grad, DeviceMatrix<uint16_t> rounded) {
  CheckAlong(rounded, grad);
  TACIT_CHECK(normal.rows == grad.rows && normal.cols == grad.cols && gain.size == grad.cols &&
              inverse.size == grad.rows);
  return Launch(stream, "LayerNormBackward", Warps(grad.rows), BackwardKernel, normal, inverse,
                gain, grad, rounded);
}

}  // namespace tacit::cuda
