#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/row_space.h"
#include "model/examples.h"
#include "model/gradient.h"
#include "model/sum_map.h"
#include "ops/backend.h"

namespace tacit::model {

struct PctrOptions {
  RowSpace space;                                       // one table per slot, in order
  uint32_t dense_width = 0;                             // numbers per example
  std::vector<uint32_t> hidden = {598, 598, 598, 598};  // ReLU layers
  ops::Precision precision = ops::Precision::kF32;
  // The input of an example (embeddings and numbers) is scaled down to this length; 0: it is not.
  double input_clip = 0;
};

// The click model of paper 003: embeddings and numbers side by side, ReLU layers, one logit. Its
// dense parameters are one flat vector (per layer: weights input-major [in x out], then biases) so
// that optimisers, noise and commits need not know the layers.
//
// One backward pass (book-keeping): Forward keeps the activations, Backward the output gradients;
// norms are |a|^2 |g|^2 per layer; ClippedSum then needs one weighted GEMM per layer. With bf16 the
// norms are those of the rounded factors and the scales are shrunk by 1 + 2^-8, so that rounding
// the scaled factor cannot carry a unit over the clip; a unit of several examples, which may
// cancel, reports a slightly larger norm (see DenseNet::SquaredNorms). A unit whose norm is not
// finite adds nothing.
//
// Not thread-safe; one per trainer. Working memory grows to the largest step.
class Pctr {
 public:
  // `backend` must outlive the model.
  Pctr(PctrOptions options, ops::Backend& backend);
  ~Pctr();

  size_t dense_size() const;                             // number of dense parameters
  size_t first_width() const;                            // outputs of the first layer
  std::vector<float> InitialDense(uint64_t seed) const;  // He-uniform, a function of the seed
  float InitialRowScale(uint32_t table) const;           // for InitialRow
  std::vector<SumMap::Weights> Matrices() const;         // of the layers, in order
  Digest Fingerprint() const;      // of everything that makes stored state this model's
  double FlopsPerExample() const;  // forward and backward

  // For learning from noised inputs alone. Represent fills in the examples' inputs, clipped where
  // options say so; one that is not finite is all zeros. LearnFrom takes inputs with their labels,
  // the first rows of `input`, and adds up the gradient of the dense parameters: further rows add
  // nothing. Neither is needed beside Forward and Backward, whose state they replace.
  size_t input_width() const;
  void Represent(const Examples& examples, std::span<float* const> rows, ops::Matrix out);
  Status LearnFrom(ops::ConstMatrix input, std::span<const float> label,
                   std::span<const float> dense, std::span<float> gradient);

  // Logits of the examples. `rows` points at the embeddings of Activations::rows.
  Status Forward(const Examples& examples, std::span<const float> dense,
                 std::span<float* const> rows, std::span<float> logits);
  // Computes the loss per example and all gradients with respect to layer outputs and inputs, for
  // the last Forward. Must follow it, with the same arguments.
  Status Backward(const Examples& examples, std::span<const float> dense, std::span<float> loss);
  // Computes the scaled sum over units of the last Backward, dense and selected rows; every unit's
  // gradient is masked to the selection before its norms are taken. `norms` are those given to the
  // rule. Repeatable until the next Forward. The dense sum is what `map` makes of the gradient, and
  // the layers' norms are of that.
  Status ClippedSum(const Examples& examples, const Activations& activations,
                    const RowSelection& selection, const ScaleRule& rule, StepGradient* sum,
                    GroupNorms* norms, const SumMap& map = kWholeGradient);
  // Computes for the last Backward, per row of the activations, the sum over units of the norm of
  // the unit's gradient of that row, each cut to `clip`. One unit moves each score by at most the
  // clip, all in one direction.
  void RowScores(const Examples& examples, const Activations& activations, double clip,
                 std::span<double> out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tacit::model
