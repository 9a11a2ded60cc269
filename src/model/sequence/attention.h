#pragma once

#include <cstdint>
#include <span>

#include "model/sequence/options.h"
#include "ops/matrix_buffer.h"
#include "ops/unit_ops.h"

namespace tacit::model {

// Causal attention within each crop of one unit, all heads. Keeps the attention shares for the
// backward pass. A crop is processed in blocks of queries, which read no key after their last
// query: up to three eighths of the products lie there and are not formed. One per worker and
// layer; not thread-safe; memory grows to the largest unit.
class CausalAttention {
 public:
  CausalAttention(size_t width, size_t heads, ops::UnitOps& ops);

  // Computes `out` (width columns) from queries, keys and values side by side (3 x width columns).
  // `key_variance` is given if attention is corrected (see ReAttentionOptions), else empty.
  Status Forward(std::span<const uint32_t> crop_end, ops::ConstMatrix qkv,
                 const ReAttentionOptions& correction, ops::ConstMatrix key_variance,
                 ops::Matrix out);
  // Computes the variance of the last Forward's output from that of the values.
  Status Variance(std::span<const uint32_t> crop_end, ops::ConstMatrix value_variance,
                  ops::Matrix out);
  // Turns the gradient of the last Forward's output into that of its input. The correction of the
  // logits counts as a constant.
  Status Backward(std::span<const uint32_t> crop_end, ops::ConstMatrix qkv, ops::ConstMatrix grad,
                  ops::Matrix qkv_grad);

 private:
  // Some queries of a head in a crop, the keys up to the last of them, and their attention shares.
  struct Part {
    size_t crop, head, first, queries, keys;  // first: of the crop's rows
    ops::Matrix shares;                       // queries x keys
  };
  template <class Body>
  Status ForParts(std::span<const uint32_t> crop_end, const Body& body);
  Status Penalise(const Part& part, ops::ConstMatrix queries, ops::ConstMatrix key_variance,
                  const ReAttentionOptions& correction);
  // A head's columns of some rows; `which` is 0 for queries, 1 for keys and 2 for values.
  template <class T>
  ops::MatrixView<T> Slice(const ops::MatrixView<T>& x, size_t which, size_t head, size_t row,
                           size_t rows) const;

  const size_t width_, heads_, head_width_;
  ops::UnitOps& ops_;
  ops::MatrixBuffer<float> shares_;  // heads x all rows, as wide as the longest crop
  ops::MatrixBuffer<float> work_, squares_;
};

}  // namespace tacit::model
