#include "model/sequence/attention.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tacit::model {
namespace {

using ops::ConstMatrix;
using ops::Matrix;
using ops::MatrixView;
using ops::Transpose;

// The most queries in a part: enough for a GEMM to run at full speed.
constexpr size_t kQueries = 64;

}  // namespace

CausalAttention::CausalAttention(size_t width, size_t heads, ops::UnitOps& ops)
    : width_(width), heads_(heads), head_width_(width / heads), ops_(ops) {
  TACIT_CHECK(heads > 0 && width % heads == 0, "heads are of equal width");
}

template <class T>
MatrixView<T> CausalAttention::Slice(const MatrixView<T>& x, size_t which, size_t head, size_t row,
                                     size_t rows) const {
  return {x.Row(row) + which * width_ + head * head_width_, rows, head_width_, x.stride};
}

// A crop's queries are cut evenly, so that no part is left with a few rows.
template <class Body>
Status CausalAttention::ForParts(std::span<const uint32_t> crop_end, const Body& body) {
  size_t begin = 0;
  for (const uint32_t end : crop_end) {
    const size_t rows = end - begin, parts = (rows + kQueries - 1) / kQueries;
    for (size_t head = 0; head < heads_; ++head) {
      for (size_t p = 0; p < parts; ++p) {
        const size_t first = rows * p / parts, last = rows * (p + 1) / parts;
        Part part{begin, head, first, last - first, last, {}};
        const Matrix all = shares_.view();
        part.shares =
            Matrix(all.Row(head * crop_end.back() + begin + first), last - first, last, all.stride);
        TACIT_RETURN_IF_ERROR(body(part));
      }
    }
    begin = end;
  }
  return {};
}

Status CausalAttention::Forward(std::span<const uint32_t> crop_end, ConstMatrix qkv,
                                const ReAttentionOptions& correction, ConstMatrix key_variance,
                                Matrix out) {
  size_t longest = 0;
  for (size_t crop = 0; crop < crop_end.size(); ++crop)
    longest = std::max<size_t>(longest, crop_end[crop] - (crop == 0 ? 0 : crop_end[crop - 1]));
  shares_.Reset(heads_ * qkv.rows, longest);
  work_.Reset(std::min(longest, kQueries), longest);
  squares_.Reset(std::min(longest, kQueries), head_width_);
  const float scale = 1 / std::sqrt(static_cast<float>(head_width_));
  const bool corrected = key_variance.data != nullptr;
  return ForParts(crop_end, [&](const Part& part) -> Status {
    const ConstMatrix queries = Slice(qkv, 0, part.head, part.crop + part.first, part.queries);
    TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kNo, queries, Transpose::kYes,
                                    Slice(qkv, 1, part.head, part.crop, part.keys), 0,
                                    part.shares));
    ConstMatrix penalty;
    if (corrected) {
      TACIT_RETURN_IF_ERROR(Penalise(
          part, queries, Slice(key_variance, 0, part.head, part.crop, part.keys), correction));
      penalty = Matrix(work_.view().data, part.queries, part.keys, work_.view().stride);
    }
    ops_.CausalSoftmax(part.first, scale, penalty, part.shares);
    return ops_.Gemm(Transpose::kNo, part.shares, Transpose::kNo,
                     Slice(qkv, 2, part.head, part.crop, part.keys), 0,
                     Slice(out, 0, part.head, part.crop + part.first, part.queries));
  });
}

// Computes kappa times half the variance of a logit <q, k> / sqrt(d) whose key has these variances,
// sum q^2 v / (2 d), and limits it.
Status CausalAttention::Penalise(const Part& part, ConstMatrix queries, ConstMatrix key_variance,
                                 const ReAttentionOptions& correction) {
  const Matrix squares(squares_.view().data, part.queries, head_width_, squares_.view().stride);
  for (size_t r = 0; r < part.queries; ++r) {
    const float* q = queries.Row(r);
    float* square = squares.Row(r);
#pragma GCC ivdep
    for (size_t c = 0; c < head_width_; ++c) square[c] = q[c] * q[c];
  }
  const Matrix penalty(work_.view().data, part.queries, part.keys, work_.view().stride);
  TACIT_RETURN_IF_ERROR(
      ops_.Gemm(Transpose::kNo, squares, Transpose::kYes, key_variance, 0, penalty));
  ops_.LimitPenalty(part.first, correction.kappa / (2 * static_cast<float>(head_width_)),
                    correction.most, penalty);
  return {};
}

Status CausalAttention::Variance(std::span<const uint32_t> crop_end, ConstMatrix value_variance,
                                 Matrix out) {
  return ForParts(crop_end, [&](const Part& part) -> Status {
    const Matrix squares(work_.view().data, part.queries, part.keys, work_.view().stride);
    for (size_t r = 0; r < part.queries; ++r) {
      const float* share = part.shares.Row(r);
      float* square = squares.Row(r);
#pragma GCC ivdep
      for (size_t c = 0; c < part.keys; ++c) square[c] = share[c] * share[c];
    }
    return ops_.Gemm(Transpose::kNo, squares, Transpose::kNo,
                     Slice(value_variance, 0, part.head, part.crop, part.keys), 0,
                     Slice(out, 0, part.head, part.crop + part.first, part.queries));
  });
}

Status CausalAttention::Backward(std::span<const uint32_t> crop_end, ConstMatrix qkv,
                                 ConstMatrix grad, Matrix qkv_grad) {
  const float scale = 1 / std::sqrt(static_cast<float>(head_width_));
  // Gradients of keys and values add up over the parts.
  for (size_t r = 0; r < qkv_grad.rows; ++r)
    std::fill_n(qkv_grad.Row(r) + width_, 2 * width_, 0.0f);
  return ForParts(crop_end, [&](const Part& part) -> Status {
    const size_t first = part.crop + part.first;
    const ConstMatrix out_grad = Slice(grad, 0, part.head, first, part.queries);
    const Matrix logit_grad(work_.view().data, part.queries, part.keys, work_.view().stride);
    TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kYes, part.shares, Transpose::kNo, out_grad, 1,
                                    Slice(qkv_grad, 2, part.head, part.crop, part.keys)));
    TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kNo, out_grad, Transpose::kYes,
                                    Slice(qkv, 2, part.head, part.crop, part.keys), 0, logit_grad));
    ops_.CausalSoftmaxBackward(part.first, scale, part.shares, logit_grad);
    TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kNo, logit_grad, Transpose::kNo,
                                    Slice(qkv, 1, part.head, part.crop, part.keys), 0,
                                    Slice(qkv_grad, 0, part.head, first, part.queries)));
    return ops_.Gemm(Transpose::kYes, logit_grad, Transpose::kNo,
                     Slice(qkv, 0, part.head, first, part.queries), 1,
                     Slice(qkv_grad, 1, part.head, part.crop, part.keys));
  });
}

}  // namespace tacit::model
