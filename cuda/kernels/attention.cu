// Attention: a warp a query; backward, then a warp a key. Blocks share the rows of a crop and head.
//   bytes:      per crop of n rows and head of width d: 12 n d in and 4 n d out, and 4 n^2 / 2 of
//               shares written once, read twice by the backward pass, which writes as many; keys
//               and values are read n / 2 times each, out of the first-level cache
//   operations: forward 2 n^2 d / 2 products and n^2 / 2 exponentials in double, backward 5 n^2 d /
//               2 products
// The first-level cache bounds it: 1,000 crops of 200 rows, one head of 64, read 10 GB of keys and
// values, 0.4 ms of 132 multiprocessors at 128 bytes a cycle. A correction reads the keys'
// variances as well, half of the forward pass again; AttendVariance is the pass's last third.
// Measured on an H200, 327 crops of 200 rows and a head of 64: forward 2.0 ms, backward 2.0 for
// queries and 1.6 for keys. That is most of a step: shared tiles and tensor cores come next.
// Registers: README.md.
#include <algorithm>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/attention.h"
#include "cuda/kernels/number.h"
#include "cuda/kernels/reduce.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128, kWarps = kBlock / kWarp;
constexpr uint32_t kRowsOfBlock = 4 * kWarps;  // of a crop, four a warp

// Calls body(row) for the crop's rows that are this warp's; blocks share a crop's rows.
template <class Body>
TACIT_IN_KERNEL void ForMyRows(uint32_t rows, const Body& body) {
  for (uint32_t row = BlockIndex().z * kWarps + WarpIndex(); row < rows;
       row += GridSize().z * kWarps)
    body(row);
}

TACIT_IN_KERNEL float AsFactor(bool rounds, float x) { return rounds ? Widen(ops::ToBf16(x)) : x; }

TACIT_IN_KERNEL float WarpMax(float mine) {
  for (uint32_t bits = kWarp / 2; bits > 0; bits /= 2) {
    const float other = ShuffleXor(mine, bits);
    mine = mine < other ? other : mine;
  }
  return mine;
}

// A head's columns in a crop.
struct Head {
  uint32_t first, rows;  // of the crop
  uint32_t width, column, all;
  uint64_t shares;  // the first row of its shares
};
TACIT_IN_KERNEL Head HeadOf(const AttentionShape& shape, uint32_t rows, uint32_t width) {
  const uint32_t crop = BlockIndex().x, head = BlockIndex().y;
  const uint32_t first = crop == 0 ? 0 : shape.crop_end[crop - 1];
  return {.first = first,
          .rows = shape.crop_end[crop] - first,
          .width = width / shape.heads,
          .column = head * (width / shape.heads),
          .all = width,
          .shares = uint64_t{head} * rows + first};
}

TACIT_IN_KERNEL float Dot(bool rounds, const float* x, const float* y, uint32_t n) {
  float sum = 0;
  for (uint32_t c = 0; c < n; ++c) sum = Fma(AsFactor(rounds, x[c]), AsFactor(rounds, y[c]), sum);
  return sum;
}

// Returns the amount that is taken off a logit.
TACIT_IN_KERNEL float Penalty(bool rounds, const AttentionCorrection& correction,
                              const float* query, const float* variance, uint32_t n) {
  float sum = 0;
  for (uint32_t c = 0; c < n; ++c)
    sum = Fma(AsFactor(rounds, query[c] * query[c]), AsFactor(rounds, variance[c]), sum);
  sum *= correction.factor;
  return sum < correction.most ? sum : correction.most;
}

TACIT_KERNEL AttendKernel(AttentionShape shape, DeviceMatrix<const float> qkv,
                          AttentionCorrection correction, DeviceMatrix<float> shares,
                          DeviceMatrix<float> out) {
  const Head head = HeadOf(shape, qkv.rows, out.cols);
  const float scale = 1 / Sqrt(static_cast<float>(head.width));
  ForMyRows(head.rows, [&](uint32_t q) {
    const float* const query = qkv.Row(head.first + q) + head.column;
    float* const share = shares.Row(head.shares + q);
    float most = -3.4e38f;
    for (uint32_t k = LaneIndex(); k <= q; k += kWarp) {
      const float* const key = qkv.Row(head.first + k) + head.all + head.column;
      float logit = scale * Dot(shape.rounds, query, key, head.width);
      if (correction.key_variance.data != nullptr)
        logit -= Penalty(shape.rounds, correction, query,
                         correction.key_variance.Row(head.first + k) + head.column, head.width);
      share[k] = logit;
      most = most < logit ? logit : most;
    }
    most = WarpMax(most);
    double sum = 0;
    for (uint32_t k = LaneIndex(); k <= q; k += kWarp) sum += Exp(double{share[k]} - most);
    sum = WarpSum(sum);
    for (uint32_t k = LaneIndex(); k <= q; k += kWarp)
      share[k] = static_cast<float>(Exp(double{share[k]} - most) / sum);
    SyncWarp();
    for (uint32_t c = LaneIndex(); c < head.width; c += kWarp) {
      float value = 0;
      for (uint32_t k = 0; k <= q; ++k)
        value = Fma(AsFactor(shape.rounds, share[k]),
                    AsFactor(shape.rounds, qkv.Row(head.first + k)[2 * head.all + head.column + c]),
                    value);
      out.Row(head.first + q)[head.column + c] = value;
    }
  });
}

TACIT_KERNEL VarianceKernel(AttentionShape shape, DeviceMatrix<const float> shares,
                            DeviceMatrix<const float> value_variance, DeviceMatrix<float> out) {
  const Head head = HeadOf(shape, out.rows, out.cols);
  ForMyRows(head.rows, [&](uint32_t q) {
    const float* const share = shares.Row(head.shares + q);
    for (uint32_t c = LaneIndex(); c < head.width; c += kWarp) {
      float sum = 0;
      for (uint32_t k = 0; k <= q; ++k)
        sum = Fma(AsFactor(shape.rounds, share[k] * share[k]),
                  AsFactor(shape.rounds, value_variance.Row(head.first + k)[head.column + c]), sum);
      out.Row(head.first + q)[head.column + c] = sum;
    }
  });
}

// Gradients of logits, into `work`, and of queries.
TACIT_KERNEL QueriesKernel(AttentionShape shape, DeviceMatrix<const float> qkv,
                           DeviceMatrix<const float> shares, DeviceMatrix<const float> grad,
                           DeviceMatrix<float> work, DeviceMatrix<float> qkv_grad) {
  const bool rounds = shape.rounds;
  const Head head = HeadOf(shape, qkv.rows, grad.cols);
  const float scale = 1 / Sqrt(static_cast<float>(head.width));
  ForMyRows(head.rows, [&](uint32_t q) {
    const float* const share = shares.Row(head.shares + q);
    const float* const out_grad = grad.Row(head.first + q) + head.column;
    float* const logit_grad = work.Row(head.shares + q);
    double mean = 0;
    for (uint32_t k = LaneIndex(); k <= q; k += kWarp) {
      const float* const value = qkv.Row(head.first + k) + 2 * head.all + head.column;
      logit_grad[k] = Dot(rounds, out_grad, value, head.width);
      mean = Fma(double{share[k]}, double{logit_grad[k]}, mean);
    }
    mean = WarpSum(mean);
    for (uint32_t k = LaneIndex(); k <= q; k += kWarp)
      logit_grad[k] = static_cast<float>(scale * share[k] * (logit_grad[k] - mean));
    SyncWarp();
    for (uint32_t c = LaneIndex(); c < head.width; c += kWarp) {
      float sum = 0;
      for (uint32_t k = 0; k <= q; ++k)
        sum = Fma(AsFactor(rounds, logit_grad[k]),
                  AsFactor(rounds, qkv.Row(head.first + k)[head.all + head.column + c]), sum);
      qkv_grad.Row(head.first + q)[head.column + c] = sum;
    }
  });
}

// Gradients of keys and values, from those of logits.
TACIT_KERNEL KeysKernel(AttentionShape shape, DeviceMatrix<const float> qkv,
                        DeviceMatrix<const float> shares, DeviceMatrix<const float> grad,
                        DeviceMatrix<const float> work, DeviceMatrix<float> qkv_grad) {
  const bool rounds = shape.rounds;
  const Head head = HeadOf(shape, qkv.rows, grad.cols);
  ForMyRows(head.rows, [&](uint32_t k) {
    for (uint32_t c = LaneIndex(); c < head.width; c += kWarp) {
      float of_key = 0, of_value = 0;
      for (uint32_t q = k; q < head.rows; ++q) {
        const uint64_t row = head.first + q;
        of_key = Fma(AsFactor(rounds, work.Row(head.shares + q)[k]),
                     AsFactor(rounds, qkv.Row(row)[head.column + c]), of_key);
        of_value = Fma(AsFactor(rounds, shares.Row(head.shares + q)[k]),
                       AsFactor(rounds, grad.Row(row)[head.column + c]), of_value);
      }
      float* const to = qkv_grad.Row(head.first + k) + head.column + c;
      to[head.all] = of_key;
      to[2 * head.all] = of_value;
    }
  });
}

void CheckShape(const AttentionShape& shape, const DeviceMatrix<const float>& qkv,
                const DeviceMatrix<const float>& shares, uint32_t width) {
  TACIT_CHECK(
      shape.heads > 0 && shape.heads < 65536 && width % shape.heads == 0 && qkv.cols == 3 * width,
      "heads are of equal width");
  TACIT_CHECK(shares.rows == uint64_t{shape.heads} * qkv.rows && shares.cols >= shape.longest);
}
runtime::LaunchShape Blocks(const AttentionShape& shape) {
  return {.grid = {static_cast<uint32_t>(shape.crop_end.size), shape.heads,
                   std::max(1u, (shape.longest + kRowsOfBlock - 1) / kRowsOfBlock)},
          .block = {kBlock},
          .shared_bytes = 0};
}

}  // namespace

Status Attend(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
              const AttentionCorrection& correction, DeviceMatrix<float> shares,
              DeviceMatrix<float> out) {
  CheckShape(shape, qkv, shares, out.cols);
  TACIT_CHECK(out.rows == qkv.rows);
  TACIT_CHECK(
      correction.key_variance.data == nullptr ||
          (correction.key_variance.rows == qkv.rows && correction.key_variance.cols == out.cols),
      "a variance per key");
  if (shape.crop_end.size == 0) return {};
  return Launch(stream, "Attend", Blocks(shape), AttendKernel, shape, qkv, correction, shares, out);
}

Status AttendVariance(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> shares,
                      DeviceMatrix<const float> value_variance, DeviceMatrix<float> out) {
  TACIT_CHECK(value_variance.rows == out.rows && value_variance.cols == out.cols &&
              shape.heads > 0 && out.cols % shape.heads == 0 &&
              shares.rows == uint64_t{shape.heads} * out.rows);
  if (shape.crop_end.size == 0) return {};
  return Launch(stream, "AttendVariance", Blocks(shape), VarianceKernel, shape, shares,
                value_variance, out);
}

Status AttendBackward(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
                      DeviceMatrix<const float> shares, DeviceMatrix<const float> grad,
                      DeviceMatrix<float> work, DeviceMatrix<float> qkv_grad) {
  CheckShape(shape, qkv, shares, grad.cols);
  TACIT_CHECK(grad.rows == qkv.rows && work.rows == shares.rows && work.cols >= shape.longest &&
              qkv_grad.rows == qkv.rows && qkv_grad.cols == qkv.cols);
  if (shape.crop_end.size == 0) return {};
  TACIT_RETURN_IF_ERROR(Launch(stream, "AttendBackwardQueries", Blocks(shape), QueriesKernel, shape,
                               qkv, shares, grad, work, qkv_grad));
  return Launch(stream, "AttendBackwardKeys", Blocks(shape), KeysKernel, shape, qkv, shares, grad,
                work, qkv_grad);
}

}  // namespace tacit::cuda
