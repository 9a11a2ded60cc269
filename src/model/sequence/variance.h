#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/dense_net.h"
#include "ops/matrix_buffer.h"
#include "ops/unit_ops.h"

// The spread of the noise in noisily trained parameters through a network (paper 000, section
// 5.2.2, corrected): each number is taken as a normal of known variance around what was computed,
// all of them independent. These are the laws of single layers; each is tested against sampling.
namespace tacit::model {

// The variances of the numbers of a layer.
struct LayerNoise {
  float weights = 0, biases = 0;
};

// The noise of the parameters at a step: the effective errors of claims 5.3 and 5.4. From public
// numbers and released counts alone.
struct ParameterNoise {
  // The variance of every number of the encoder that got noise of its own: (sigma C / B)^2.
  float weight_variance = 0;
  // The variance of every number in the item's row: (sigma C / (B p))^2, p the chance that a unit
  // brings the item. Empty if there is no noise, and attention is not corrected.
  std::span<const float> item_variance;
  // The rank of the factors by which the encoder's matrices were noised; 0: they were noised whole.
  uint32_t factor_rank = 0;

  bool on() const { return !item_variance.empty(); }
  LayerNoise Of(const LinearLayer& layer) const;
};

// The same with numbers of its own.
struct KeptNoise {
  float weight_variance = 0;
  std::vector<float> item_variance = {};
  uint32_t factor_rank = 0;

  ParameterNoise view() const { return {weight_variance, item_variance, factor_rank}; }
};

// Computes columns [first, first + out.cols) of a layer whose weights have the variance w and whose
// biases b: v_out = sum_k v_k (W_k^2 + w) + w sum_k m_k^2 + b. `squares` are the weights squared,
// all columns.
Status LinearVariance(ops::UnitOps& ops, ops::ConstMatrix mean, ops::ConstMatrix variance,
                      ops::ConstMatrix squares, size_t first, LayerNoise noise, ops::Matrix out);

// In place: v <- gain^2 v / (s + mean(v) + epsilon), s the variance over the columns of the row
// that was normalised; `inverse` is 1 / sqrt(s + epsilon). The term mean(v) is there because the
// row's own noise makes it longer.
void LayerNormVariance(std::span<const float> inverse, std::span<const float> gain,
                       ops::Matrix variance);

}  // namespace tacit::model
