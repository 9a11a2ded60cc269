#pragma once

#include <memory>
#include <span>

#include "model/sequence/coins.h"
#include "model/sequence/layout.h"
#include "model/sequence/unit_gradient.h"
#include "model/sequence/unit_rows.h"
#include "model/sequence/variance.h"

namespace tacit::model {

// Turns the rows of a unit into hidden states, one per position, each from itself and the positions
// before it in its crop, and keeps all that the backward pass needs. One per worker, whose
// arithmetic it uses. Calls come in order: BeginStep, then Forward and, when training, Backward for
// each unit. Not thread-safe. Memory grows to the largest unit.
class Encoder {
 public:
  virtual ~Encoder() = default;

  // `parameters` and the noise must stay in place and unchanged until the next call.
  virtual Status BeginStep(std::span<const float> parameters, const ParameterNoise& noise) = 0;
  // `input` must stay until Backward is done. `variance` is that of the input if the noise is on,
  // else empty; it is overwritten. The hidden states are valid until the next Forward.
  virtual Status Forward(const UnitRows& rows, const DropoutCoins& coins, ops::ConstMatrix input,
                         ops::Matrix variance, ops::ConstMatrix* hidden) = 0;
  // Turns the gradient of the hidden states into that of the input, in place; adds the parameters'
  // own gradient to the unit's.
  virtual Status Backward(const UnitRows& rows, ops::Matrix grad, UnitGradient* gradient) = 0;
};

// `layout` and `ops` must outlive the encoder.
std::unique_ptr<Encoder> MakeTransformer(const SequenceLayout& layout, ops::UnitOps& ops);
std::unique_ptr<Encoder> MakeRecurrentEncoder(const SequenceLayout& layout, ops::UnitOps& ops);

}  // namespace tacit::model
