// Variances beside a sequence model's rows: a thread a number, or a warp a row where it is summed.
//   bytes:      4 to 8 read and 4 written a number
//   operations: two to six a number; ReluVariance an exponential and an erfc in double, some 80
// Memory bounds all but ReluVariance: 200,000 rows of 64 numbers are 150 MB at most, 50 us at 3
// TB/s, and 1 G operations in double there, 30 us. Forecast: 60 us a kernel, eight of them a block
// but the last, which has two. Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/reduce.h"
#include "cuda/kernels/reattention/variance.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128;

TACIT_KERNEL EmbedKernel(DeviceSpan<const uint32_t> item, DeviceSpan<const float> item_variance,
                         float scale, float position_variance, DeviceMatrix<float> out) {
  const uint64_t i = GlobalThread(), r = i / out.cols;
  if (r >= out.rows) return;
  out.Row(r)[i % out.cols] = scale * scale * item_variance[item[r]] + position_variance;
}

template <class T>
TACIT_KERNEL SquareKernel(DeviceMatrix<const float> x, DeviceMatrix<T> out) {
  const uint64_t i = GlobalThread(), r = i / x.cols, c = i % x.cols;
  if (r < x.rows) Narrow(x.Row(r)[c] * x.Row(r)[c], out.Row(r) + c);
}

TACIT_KERNEL OwnKernel(DeviceMatrix<const float> mean, DeviceMatrix<const float> variance,
                       float of_weights, float of_biases, DeviceMatrix<float> out) {
  const uint64_t r = GlobalThread() / kWarp;
  if (r >= out.rows) return;
  double length = 0;
  for (uint32_t c = LaneIndex(); c < mean.cols; c += kWarp) {
    const double m = mean.Row(r)[c];
    length = Fma(m, m, length) + double{variance.Row(r)[c]};
  }
  const auto own = static_cast<float>(of_weights * WarpSum(length) + of_biases);
  for (uint32_t c = LaneIndex(); c < out.cols; c += kWarp) out.Row(r)[c] += own;
}

TACIT_KERNEL NormKernel(DeviceSpan<const float> inverse, DeviceSpan<const float> gain,
                        DeviceMatrix<float> variance) {
  const uint64_t r = GlobalThread() / kWarp;
  if (r >= variance.rows) return;
  float* const v = variance.Row(r);
  double sum = 0;
  for (uint32_t c = LaneIndex(); c < variance.cols; c += kWarp) sum += v[c];
  const double mean = WarpSum(sum) / variance.cols;
  const auto factor =
      static_cast<float>(1 / (1 / (double{inverse[r]} * double{inverse[r]}) + mean));
  for (uint32_t c = LaneIndex(); c < variance.cols; c += kWarp) v[c] *= gain[c] * gain[c] * factor;
}

// With z = mean / deviation, P the chance to be above 0 and p the density there, the share of the
// variance that is left is (z^2 + 1) P + z p - (z P + p)^2.
TACIT_KERNEL ReluKernel(DeviceMatrix<const float> mean, DeviceMatrix<float> variance) {
  constexpr double kSqrtHalf = 0.70710678118654752440, kDensity = 0.39894228040143267794;
  const uint64_t i = GlobalThread(), r = i / mean.cols, c = i % mean.cols;
  if (r >= mean.rows) return;
  float& v = variance.Row(r)[c];
  if (!(v > 0)) return;
  const double z = mean.Row(r)[c] / Sqrt(double{v});
  const double above = Erfc(-z * kSqrtHalf) / 2, density = kDensity * Exp(-z * z / 2);
  const double first = z * above + density;
  const double left = (z * z + 1) * above + z * density - first * first;
  v = static_cast<float>(v * (left > 0 ? left : 0.0));
}

runtime::LaunchShape Numbers(uint64_t rows, uint64_t cols) {
  return {.grid = BlocksFor(rows * cols, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

}  // namespace

Status EmbedVariance(Stream& stream, DeviceSpan<const uint32_t> item,
                     DeviceSpan<const float> item_variance, float scale, float position_variance,
                     DeviceMatrix<float> out) {
  TACIT_CHECK(item.size == out.rows && out.cols > 0);
  return Launch(stream, "EmbedVariance", Numbers(out.rows, out.cols), EmbedKernel, item,
                item_variance, scale, position_variance, out);
}

template <class T>
Status SquareAll(Stream& stream, DeviceMatrix<const float> x, DeviceMatrix<T> out) {
  TACIT_CHECK(x.rows == out.rows && x.cols == out.cols && x.cols > 0);
  return Launch(stream, "SquareAll", Numbers(x.rows, x.cols), SquareKernel<T>, x, out);
}
template Status SquareAll<float>(Stream&, DeviceMatrix<const float>, DeviceMatrix<float>);
template Status SquareAll<uint16_t>(Stream&, DeviceMatrix<const float>, DeviceMatrix<uint16_t>);

Status AddOwnVariance(Stream& stream, DeviceMatrix<const float> mean,
                      DeviceMatrix<const float> variance, float of_weights, float of_biases,
                      DeviceMatrix<float> out) {
  TACIT_CHECK(mean.rows == variance.rows && mean.cols == variance.cols && out.rows == mean.rows);
  return Launch(stream, "AddOwnVariance", Numbers(out.rows, kWarp), OwnKernel, mean, variance,
                of_weights, of_biases, out);
}

Status LayerNormVariance(Stream& stream, DeviceSpan<const float> inverse,
                         DeviceSpan<const float> gain, DeviceMatrix<float> variance) {
  TACIT_CHECK(inverse.size == variance.rows && gain.size == variance.cols);
  return Launch(stream, "LayerNormVariance", Numbers(variance.rows, kWarp), NormKernel, inverse,
                gain, variance);
}

Status ReluVariance(Stream& stream, DeviceMatrix<const float> mean, DeviceMatrix<float> variance) {
  TACIT_CHECK(mean.rows == variance.rows && mean.cols == variance.cols && mean.cols > 0);
  return Launch(stream, "ReluVariance", Numbers(mean.rows, mean.cols), ReluKernel, mean, variance);
}

}  // namespace tacit::cuda
