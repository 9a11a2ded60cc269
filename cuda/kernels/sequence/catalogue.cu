// The catalogue's softmax: a block a row. States: a thread a number.
//   bytes:      a logit is read twice, the second time out of the first-level cache, and written
//               once as 4 or 2
//   operations: an exponential in f32 a logit, some 20 operations, the CPU's bits
// A sequence of 200 positions over 3,417 items has 683,000 logits, 4.1 MB to read and write in
// bf16: 1.0 us at the 4.2 TB/s of an H200, and 14 M operations, .5 us. Forecast: 1.3 us a sequence,
// where exponentials in double, some 30 operations and two conversions at a sixteenth of the rate
// of f32 each, were forecast at 2. Less once the logits stay in shared memory between both. Of the
// 4.1 MB 1.4 go to memory if the product of the logits has left them in the second-level cache
// (sequence_wave.cc); that they do stay there is not measured. Registers: README.md.
#include <algorithm>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/reduce.h"
#include "cuda/kernels/parts/vector.h"
#include "cuda/kernels/sequence/catalogue.h"
#include "ops/exp.h"

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

constexpr uint32_t kEach = 4;  // logits that a thread has under way at once

// Calls body(column, count, logits) for the thread's logits of a row, biases added: `count` of them
// are there, neighbours from the column on.
template <class Body>
TACIT_IN_KERNEL void ForLogits(const float* row, uint32_t cols, const DeviceSpan<const float>& bias,
                               const Body& body) {
  for (uint32_t c = kEach * ThreadIndex().x; c < cols; c += kEach * kBlock) {
    const uint32_t count = cols - c < kEach ? cols - c : kEach;
    auto logits = LoadVector<kEach>(row + c, count);
    if (bias.size > 0) {
      const auto biases = LoadVector<kEach>(bias.data + c, count);
      TACIT_UNROLL
      for (uint32_t i = 0; i < kEach; ++i) logits.x[i] += biases.x[i];
    }
    body(c, count, logits);
  }
}

template <class T>
TACIT_KERNEL ExpKernel(DeviceMatrix<const float> logits, DeviceSpan<const float> bias,
                       PredictedRows rows, DeviceMatrix<T> e, SoftmaxRows out) {
  Scratch& scratch = SharedAs<Scratch>();
  using Logits = Vector<float, kEach>;
  const uint32_t r = BlockIndex().x, cols = logits.cols;
  const float* const row = logits.Row(r);
  float most = -3.4e38f;
  ForLogits(row, cols, bias, [&](uint32_t, uint32_t count, const Logits& x) {
    TACIT_UNROLL
    for (uint32_t i = 0; i < kEach; ++i) most = i < count && most < x.x[i] ? x.x[i] : most;
  });
  most = BlockMax(most, scratch.most);
  const double spread = rows.spread;
  // Writes exponentials less `each`, and returns their sum before that.
  const auto write = [&](uint32_t c, uint32_t count, const Logits& x, float each) {
    Vector<T, kEach> numbers;
    float sum = 0;
    TACIT_UNROLL
    for (uint32_t i = 0; i < kEach; ++i) {
      const float number = ops::Exp(x.x[i] - most);
      sum += i < count ? number : 0.0f;
      Narrow(number - each, &numbers.x[i]);
    }
    StoreVector(numbers, count, e.Row(r) + c);
    return sum;
  };
  double sum = 0, mean = 0;
  ForLogits(row, cols, bias, [&](uint32_t c, uint32_t count, const Logits& x) {
    sum += write(c, count, x, 0);
    if (spread > 0)
      for (uint32_t i = 0; i < count; ++i) mean += x.x[i];
  });
  sum = BlockSum(sum, scratch.sums);
  if (spread > 0) {
    mean = BlockSum(mean, scratch.sums) / cols;
    const auto each = static_cast<float>(spread * sum / cols);
    ForLogits(row, cols, bias,
              [&](uint32_t c, uint32_t count, const Logits& x) { (void)write(c, count, x, each); });
  }
  if (ThreadIndex().x != 0) return;
  const float weight = rows.weight[r];
  const uint32_t target = rows.target[r];
  const float own = bias.size == 0 ? row[target] : row[target] + bias[target];
  const double predicted = (1 - spread) * double{own} + spread * mean;
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
