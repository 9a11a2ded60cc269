// The catalogue's softmax: a block a row. States: a thread a number.
//   bytes:      a logit is read twice, the second time out of the second-level cache, and written
//               once as 4 or 2
//   operations: an exponential in double a logit, some 30 operations
// A sequence of 200 positions over 3,417 items has 683,000 logits, 4.1 MB to read and write in
// bf16: 1.4 us at 3 TB/s, and 20 M operations in double, 0.6 us. Forecast: 2 us a sequence beside
// 10 for the products, and less once the logits stay in shared memory between both. Registers:
// README.md.
#include <algorithm>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/catalogue.h"
#include "cuda/kernels/number.h"
#include "cuda/kernels/reduce.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128, kWarps = kBlock / kWarp;

struct alignas(16) Scratch {
  double sums[kWarps];
  float most[kWarps];
};

TACIT_IN_KERNEL float BlockMax(float mine, float* scratch) {
  for (uint32_t bits = kWarp / 2; bits > 0; bits /= 2) {
    const float other = ShuffleXor(mine, bits);
    mine = mine < other ? other : mine;
  }
  if (LaneIndex() == 0) scratch[WarpIndex()] = mine;
  SyncBlock();
  for (uint32_t w = 0; w < kWarps; ++w) mine = mine < scratch[w] ? scratch[w] : mine;
  SyncBlock();
  return mine;
}

template <class T>
TACIT_KERNEL ExpKernel(DeviceMatrix<const float> logits, DeviceSpan<const float> bias,
                       PredictedRows rows, DeviceMatrix<T> e, SoftmaxRows out) {
  Scratch& scratch = SharedAs<Scratch>();
  const uint32_t r = BlockIndex().x;
  const auto logit = [&](uint32_t c) {
    return bias.size == 0 ? logits.Row(r)[c] : logits.Row(r)[c] + bias[c];
  };
  float most = -3.4e38f;
  for (uint32_t c = ThreadIndex().x; c < logits.cols; c += kBlock) {
    const float x = logit(c);
    most = most < x ? x : most;
  }
  most = BlockMax(most, scratch.most);
  const double spread = rows.spread;
  double sum = 0, mean = 0;
  for (uint32_t c = ThreadIndex().x; c < logits.cols; c += kBlock) {
    const double number = Exp(double{logit(c)} - most);
    sum += number;
    if (spread > 0)
      mean += logit(c);
    else
      Narrow(static_cast<float>(number), e.Row(r) + c);
  }
  sum = BlockSum(sum, scratch.sums);
  if (spread > 0) {
    mean = BlockSum(mean, scratch.sums) / logits.cols;
    const double each = spread * sum / logits.cols;
    for (uint32_t c = ThreadIndex().x; c < logits.cols; c += kBlock)
      Narrow(static_cast<float>(Exp(double{logit(c)} - most) - each), e.Row(r) + c);
  }
  if (ThreadIndex().x != 0) return;
  const float weight = rows.weight[r];
  const double predicted = (1 - spread) * double{logit(rows.target[r])} + spread * mean;
  out.loss[r] = static_cast<float>(weight * (double{most} + Log1p(sum - 1) - predicted));
  out.factor[r] = weight / static_cast<float>(sum);
  out.minus_sum[r] = -static_cast<float>(sum * (1 - spread));
}

template <class T>
TACIT_KERNEL ScaleKernel(DeviceSpan<const float> factor, DeviceMatrix<const float> states,
                         DeviceMatrix<T> scaled) {
  const uint64_t i = GlobalThread(), r = i / states.cols, c = i % states.cols;
  if (r < states.rows) Narrow(factor[r] * states.Row(r)[c], scaled.Row(r) + c);
}

template <class T>
TACIT_KERNEL StateGradientsKernel(PredictedRows rows, DeviceSpan<const float> factor,
                                  DeviceMatrix<const T> table, DeviceMatrix<float> products) {
  const uint64_t i = GlobalThread(), r = i / products.cols, c = i % products.cols;
  if (r >= products.rows) return;
  float& number = products.Row(r)[c];
  const float own = rows.weight[r] * (1 - rows.spread);
  number = factor[r] * number - own * Widen(table.Row(rows.target[r])[c]);
}

runtime::LaunchShape Numbers(uint64_t rows, uint64_t cols) {
  return {.grid = BlocksFor(rows * cols, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

}  // namespace

template <class T>
Status ExpRows(Stream& stream, DeviceMatrix<const float> logits, DeviceSpan<const float> bias,
               const PredictedRows& rows, DeviceMatrix<T> e, const SoftmaxRows& out) {
  const uint32_t n = logits.rows;
  TACIT_CHECK(logits.cols > 0 && e.rows == n && e.cols == logits.cols &&
              (bias.size == 0 || bias.size == logits.cols));
  TACIT_CHECK(rows.target.size == n && rows.weight.size == n && out.loss.size == n &&
              out.factor.size == n && out.minus_sum.size == n);
  if (n == 0) return {};
  return Launch(stream, "ExpRows",
                {.grid = {n}, .block = {kBlock}, .shared_bytes = sizeof(Scratch)}, ExpKernel<T>,
                logits, bias, rows, e, out);
}

template <class T>
Status ScaleStates(Stream& stream, DeviceSpan<const float> factor, DeviceMatrix<const float> states,
                   DeviceMatrix<T> scaled) {
  TACIT_CHECK(factor.size == states.rows && scaled.rows == states.rows &&
              scaled.cols == states.cols);
  return Launch(stream, "ScaleStates", Numbers(states.rows, states.cols), ScaleKernel<T>, factor,
                states, scaled);
}

template <class T>
Status StateGradients(Stream& stream, const PredictedRows& rows, DeviceSpan<const float> factor,
                      DeviceMatrix<const T> table, DeviceMatrix<float> products) {
  TACIT_CHECK(rows.target.size == products.rows && rows.weight.size == products.rows &&
              factor.size == products.rows && table.cols == products.cols);
  return Launch(stream, "StateGradients", Numbers(products.rows, products.cols),
                StateGradientsKernel<T>, rows, factor, table, products);
}

#define TACIT_CATALOGUE(T)                                                                    \
  template Status ExpRows<T>(Stream&, DeviceMatrix<const float>, DeviceSpan<const float>,     \
                             const PredictedRows&, DeviceMatrix<T>, const SoftmaxRows&);      \
  template Status ScaleStates<T>(Stream&, DeviceSpan<const float>, DeviceMatrix<const float>, \
                                 DeviceMatrix<T>);                                            \
  template Status StateGradients<T>(Stream&, const PredictedRows&, DeviceSpan<const float>,   \
                                    DeviceMatrix<const T>, DeviceMatrix<float>)
TACIT_CATALOGUE(float);
TACIT_CATALOGUE(uint16_t);
#undef TACIT_CATALOGUE

}  // namespace tacit::cuda
