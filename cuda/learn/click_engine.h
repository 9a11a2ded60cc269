#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/device/stream.h"
#include "mechanism/mechanism.h"
#include "model/pctr.h"
#include "noise/noise.h"
#include "store/delta.h"
#include "store/working_rows.h"
#include "stream/steps/participation.h"
#include "train/learner.h"
#include "train/optimizer.h"

namespace tacit::cuda {

struct ClickEngineOptions {
  model::PctrOptions model;
  train::OptimizerOptions optimizer;
  // Examples that go through the model at a time. A larger step goes through in parts of whole
  // units; a unit of more examples than this makes a step fail.
  uint32_t chunk_examples = 16384;
};

// The private step of a click model on one GPU, all tables in its memory. What it releases has the
// law that the CPU's code gives it, under a charge that knows nothing of the device: the same grid
// and threshold, noise drawn on the device under a key of the step's own. Not thread-safe.
//
// A step is Begin, then Release. After a failure in either, the engine must not be used again: what
// it has that was not settled is lost, and was never visible.
class DeviceClickEngine {
 public:
  // `rows` and `dense` are the model as of the last commit. All references must outlive the engine.
  // Fails with kRefused if the mechanism or the optimiser has no form for a GPU, and if the device
  // does not compute noise as the CPU does.
  static Result<std::unique_ptr<DeviceClickEngine>> Make(Device& device, ClickEngineOptions options,
                                                         mechanism::Mechanism& mechanism,
                                                         noise::NoiseSource& noise,
                                                         store::WorkingRows& rows,
                                                         const store::DenseState& dense);
  virtual ~DeviceClickEngine() = default;

  // Predicts alone, for previews: fills in the report's logits and loss.
  virtual Status Predict(const stream::StepBatch& step, train::StepReport* report) = 0;
  // Forward and backward passes. Releases nothing: the step may still be abandoned, by another
  // Begin. `step` must live until Release returns.
  virtual Status Begin(const stream::StepBatch& step) = 0;
  // The rest of the step: selection, clipped sums, noise, update. The report's logits are valid
  // until the next call.
  virtual Status Release(train::StepReport* report) = 0;
  // Brings dense() and the rows up to the last step.
  virtual Status Settle() = 0;
  virtual const store::DenseState& dense() const = 0;
};

}  // namespace tacit::cuda
