#pragma once

#include <memory>

#include "model/sequence/encoder.h"
#include "model/sequence/output_layer.h"
#include "model/sequence/unit_gradient.h"

namespace tacit::model {

// One worker's pass through units: embeddings, encoder, output, and back. Not thread-safe.
class UnitPass {
 public:
  // `layout`, and the prior if there is one, must outlive it.
  UnitPass(const SequenceLayout& layout, std::unique_ptr<ops::UnitOps> ops,
           const LogitPrior* prior = nullptr);

  Status BeginStep(std::span<const float> parameters, const ParameterNoise& noise);

  // Computes the hidden states of the unit's rows, valid until the next call.
  Status Forward(const UnitRows& rows, const DropoutCoins& coins, ops::ConstMatrix* hidden);
  // Runs Forward, then computes the unit's gradient. Returns false if no position counts and
  // nothing was written.
  Result<bool> Learn(const OutputStep& step, const UnitRows& rows, const DropoutCoins& coins,
                     double* loss);

  // Scores every item as the one after this history, of which the latest window is read. For an
  // empty history the scores are the items' biases if there are any, else 0. Nothing is dropped or
  // masked.
  Status Score(std::span<const uint32_t> history, std::span<float> scores);

  UnitGradient& gradient() { return gradient_; }
  ops::UnitOps& ops() { return *ops_; }

 private:
  void Embed(const UnitRows& rows, const DropoutCoins& coins);
  void SpreadEmbeddingGradient(const UnitRows& rows, const DropoutCoins& coins, ops::Matrix grad);

  const SequenceLayout& layout_;
  const std::unique_ptr<ops::UnitOps> ops_;
  const LogitPrior* const prior_;
  const std::unique_ptr<Encoder> encoder_;
  OutputLayer output_;
  UnitGradient gradient_;
  std::span<const float> parameters_;
  ParameterNoise noise_;
  UnitRows scored_;
  ops::MatrixBuffer<float> input_, variance_, dropped_, grad_;
};

}  // namespace tacit::model
