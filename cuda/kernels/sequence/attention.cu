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
// queries and 1.6 for keys. Where GoesThroughTiles says so, attention_tiles.cu has the passes.
// Registers: README.md.
#include <algorithm>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/reduce.h"
#include "cuda/kernels/sequence/attention.h"
#include "cuda/kernels/sequence/attention_parts.h"
#include "cuda/kernels/sequence/attention_tiles.h"

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
                const DeviceMatrix<const float>& kept, uint32_t width) {
  TACIT_CHECK(
      shape.heads > 0 && shape.heads < 65536 && width % shape.heads == 0 && qkv.cols == 3 * width,
      "heads are of equal width");
  TACIT_CHECK(kept.rows == uint64_t{shape.heads} * qkv.rows &&
              kept.cols >= KeptNumbers(shape, width));
}
runtime::LaunchShape Blocks(const AttentionShape& shape) {
  return {.grid = {static_cast<uint32_t>(shape.crop_end.size), shape.heads,
                   std::max(1u, (shape.longest + kRowsOfBlock - 1) / kRowsOfBlock)},
          .block = {kBlock},
          .shared_bytes = 0};
}

}  // namespace

Status Attend(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
              const AttentionCorrection& correction, DeviceMatrix<float> kept,
              DeviceMatrix<float> out) {
  CheckShape(shape, qkv, kept, out.cols);
  TACIT_CHECK(out.rows == qkv.rows);
  TACIT_CHECK(shape.corrected == (correction.key_variance.data != nullptr),
              "a correction where the shape says so");
  TACIT_CHECK(!shape.corrected || (correction.key_variance.rows == qkv.rows &&
                                   correction.key_variance.cols == out.cols),
              "a variance per key");
  if (shape.crop_end.size == 0) return {};
  if (GoesThroughTiles(shape, out.cols))
    return AttendByTiles(stream, shape, qkv, correction, kept, out);
  return Launch(stream, "Attend", Blocks(shape), AttendKernel, shape, qkv, correction, kept, out);
}

Status AttendVariance(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> shares,
                      DeviceMatrix<const float> value_variance, DeviceMatrix<float> out) {
  TACIT_CHECK(value_variance.rows == out.rows && value_variance.cols == out.cols &&
              shape.heads > 0 && out.cols % shape.heads == 0 &&
              shares.rows == uint64_t{shape.heads} * out.rows);
  TACIT_CHECK(shape.corrected && shares.cols >= shape.longest, "shares are stored");
  if (shape.crop_end.size == 0) return {};
  if (GoesThroughTiles(shape, out.cols))
    return AttendVarianceByTiles(stream, shape, shares, value_variance, out);
  return Launch(stream, "AttendVariance", Blocks(shape), VarianceKernel, shape, shares,
                value_variance, out);
}

Status AttendBackward(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
                      DeviceMatrix<const float> kept, DeviceMatrix<const float> grad,
                      DeviceMatrix<float> work, DeviceMatrix<float> qkv_grad) {
  CheckShape(shape, qkv, kept, grad.cols);
  TACIT_CHECK(grad.rows == qkv.rows && work.rows == kept.rows &&
              work.cols >= WorkNumbers(shape, grad.cols) && qkv_grad.rows == qkv.rows &&
              qkv_grad.cols == qkv.cols);
  if (shape.crop_end.size == 0) return {};
  if (GoesThroughTiles(shape, grad.cols))
    return AttendBackwardByTiles(stream, shape, qkv, kept, grad, work, qkv_grad);
  TACIT_RETURN_IF_ERROR(Launch(stream, "AttendBackwardQueries", Blocks(shape), QueriesKernel, shape,
                               qkv, kept, grad, work, qkv_grad));
  return Launch(stream, "AttendBackwardKeys", Blocks(shape), KeysKernel, shape, qkv, kept, grad,
                work, qkv_grad);
}

}  // namespace tacit::cuda
