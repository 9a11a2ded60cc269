#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "model/pctr.h"
#include "model/sum_map.h"
#include "store/types/delta.h"
#include "stream/steps/participation.h"
#include "train/engines/gpu_step.h"
#include "train/learner/learner.h"
#include "train/optimizer/optimizer.h"

namespace tacit::train {

struct ClickEngineOptions {
  model::PctrOptions model;
  OptimizerOptions optimizer;
  model::SumMapOptions sum_map = {};
  uint64_t seed = 1;          // of the initial parameters and the map's coins; public
  uint64_t steps_taken = 0;   // until the dense state that the engine begins with
  GpuStepSizes planned = {};  // a GPU has memory for such steps from the start
};

// The work of a click model's private step, on the processor or on a GPU. The learner keeps what is
// policy: charges, when a period opens, whether a step is abandoned. What a step releases has the
// same law wherever it is computed. Not thread-safe.
//
// A step is Begin, then Release. After a failure in either, the engine must not be used again: what
// it learnt and did not settle is lost, and was never visible.
class ClickEngine {
 public:
  virtual ~ClickEngine() = default;

  // The step that waits behind the next one: it may be fetched, and begun, while that one is
  // taken. Valid until Withdraw.
  virtual void Announce(const stream::StepBatch&) {}
  virtual void Withdraw() {}
  // Predicts alone: fills in the report's logits and loss.
  virtual Status Predict(const stream::StepBatch& batch, StepReport* report) = 0;
  // Forward and backward passes. Releases nothing: the step may still be abandoned, by another
  // Begin or Predict. `step` must live until Release returns.
  virtual Status Begin(const stream::StepBatch& step) = 0;
  // The rest of the step: selection, clipped sums, noise, update. The report's logits are valid
  // until the next call.
  virtual Status Release(StepReport* report) = 0;
  // Brings dense() and the learner's working rows up to the last step. Rows may be on their way
  // then (store::WorkingRows::Expect).
  virtual Status Settle() = 0;
  // Tells whether the rows that the last Settle left on their way are numbers of a working model:
  // no larger than store::kNumberMost.
  virtual bool settled_numbers() const { return true; }
  virtual const store::DenseState& dense() const = 0;
  // The same for a commit.
  virtual std::shared_ptr<const store::DenseState> CopyDense() const {
    return std::make_shared<const store::DenseState>(dense());
  }
};

}  // namespace tacit::train
