#pragma once

#include <memory>
#include <span>

#include "model/sequence/coins.h"
#include "model/sequence/layout.h"
#include "model/sequence/unit_rows.h"
#include "model/sequence/variance.h"

namespace tacit::model {

// What turns the rows of a unit into hidden states, one per position, each from itself and what is
// before it in its crop; with all that the way back needs kept. One per worker: the arithmetic of
// its unit is its own. Calls come in order: BeginStep, then Forward and, when training, Backward
// for each unit. Not thread-safe. Memory grows to the largest unit.
class Encoder {
 public:
  virtual ~Encoder() = default;

  // `parameters` stay where and what they are until the next call; so does the noise.
  virtual Status BeginStep(std::span<const float> parameters, const ParameterNoise& noise) = 0;
  // `input` stays until Backward is done. `variance` of the input where the noise is on, else
  // empty; it is overwritten. The hidden states are valid until the next Forward.
  virtual Status Forward(const UnitRows& rows, const DropoutCoins& coins, ops::ConstMatrix input,
                         ops::Matrix variance, ops::ConstMatrix* hidden) = 0;
  // From the gradient of the hidden states to that of the input, in place; adds the parameters'
  // own to `gradient`, which is laid out as they are.
  virtual Status Backward(const UnitRows& rows, ops::Matrix grad, std::span<float> gradient) = 0;
};

// `layout` and `ops` must outlive the encoder.
std::unique_ptr<Encoder> MakeTransformer(const SequenceLayout& layout, ops::UnitOps& ops);
std::unique_ptr<Encoder> MakeRecurrentEncoder(const SequenceLayout& layout, ops::UnitOps& ops);

}  // namespace tacit::model
