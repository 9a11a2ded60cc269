#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/sequence/layout.h"
#include "model/sequence/logit_prior.h"
#include "model/sequence/unit_gradient.h"
#include "model/sequence/unit_rows.h"
#include "ops/matrix_buffer.h"
#include "ops/unit_ops.h"

namespace tacit::model {

// The part of the output layer that all units of a step share; made once a step, read by all
// workers.
class OutputStep {
 public:
  explicit OutputStep(const SequenceLayout& layout) : layout_(layout) {}

  // `coins` are public; the step's negatives follow from them. `ops` are of the workers' kind.
  void Begin(std::span<const float> parameters, uint64_t coins, ops::UnitOps& ops);

  std::span<const float> parameters() const { return parameters_; }
  // The rows of the catalogue, or of the negatives, as factors: states times them are logits, and
  // logits' gradients times them are the states' gradients.
  const ops::RightFactor& to_logits() const { return to_logits_; }
  const ops::RightFactor& to_states() const { return to_states_; }
  bool sampled() const { return !negatives_.empty(); }
  // Distinct items.
  std::span<const uint32_t> negatives() const { return negatives_; }
  // The item's place among the negatives; -1: none.
  int32_t PlaceOf(uint32_t item) const { return place_[item]; }
  // The numbers added to the negatives' logits: ln((catalogue - 1) / negatives), so that they stand
  // for all items that are not the target. One more, for the target: 0.
  std::span<const float> shift() const { return shift_; }
  // Means over the catalogue, if labels are smoothed.
  std::span<const float> mean_row() const { return mean_row_; }
  double mean_bias() const { return mean_bias_; }

 private:
  void DrawNegatives(uint64_t coins);

  const SequenceLayout& layout_;
  std::span<const float> parameters_;
  std::vector<uint32_t> negatives_;
  std::vector<int32_t> place_;
  ops::MatrixBuffer<float> negative_rows_;
  ops::RightFactor to_logits_, to_states_;
  std::vector<float> shift_, mean_row_;
  double mean_bias_ = 0;
};

// Softmax over the catalogue, or over the target and the step's negatives, at each position that
// counts; forward and backward in one, a few positions at a time, so that the logits of some
// thousand items stay in the second-level cache. One per worker; not thread-safe.
class OutputLayer {
 public:
  // `prior` may be null; all must outlive it.
  OutputLayer(const SequenceLayout& layout, ops::UnitOps& ops, const LogitPrior* prior)
      : layout_(layout), ops_(ops), prior_(prior) {}

  // Adds the output rows' gradient (and the biases') to `gradient`, and sets that of the hidden
  // states. `loss` is weighted over the positions. Returns false if no position counts; nothing
  // else is then written.
  Result<bool> Run(const OutputStep& step, const UnitRows& rows, ops::ConstMatrix hidden,
                   ops::Matrix hidden_grad, UnitGradient* gradient, double* loss);

 private:
  // Positions that count and are processed together.
  struct Chunk {
    std::span<const uint32_t> row;
    bool first = false;
  };
  Status RunAll(const OutputStep& step, const UnitRows& rows, const Chunk& chunk,
                ops::Matrix hidden_grad, UnitGradient* gradient);
  Status Predict(const OutputStep& step, const UnitRows& rows, const Chunk& chunk);
  Status StateGradient(const OutputStep& step, const UnitRows& rows, const Chunk& chunk,
                       ops::Matrix hidden_grad);
  Status TableGradient(const UnitRows& rows, const Chunk& chunk, UnitGradient* gradient);
  void AddSpread(UnitGradient* gradient);
  std::span<float> BiasOf(UnitGradient* gradient) const;
  Status RunSampled(const OutputStep& step, const UnitRows& rows, const Chunk& chunk,
                    ops::Matrix hidden_grad, UnitGradient* gradient);
  void MaskSeen(const UnitRows& rows, std::span<const uint32_t> places, ops::Matrix logits) const;
  void AddNegatives(const OutputStep& step, UnitGradient* gradient);

  const SequenceLayout& layout_;
  ops::UnitOps& ops_;
  const LogitPrior* const prior_;
  std::vector<uint32_t> counted_;
  ops::MatrixBuffer<float> states_, state_grad_, logits_, negative_grad_;
  ops::MatrixBuffer<float> scaled_;
  ops::LeftFactor exponentials_;
  ops::RightFactor scaled_factor_;
  std::vector<ops::ExpRow> exp_;
  std::vector<float> factor_;  // per position: weight / normaliser
  std::vector<float> target_;  // a target's row
  std::vector<float> spread_;  // states times weight, and the weights, summed up
  double loss_ = 0;
};

}  // namespace tacit::model
