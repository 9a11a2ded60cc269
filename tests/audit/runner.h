#pragma once

#include <cstdint>
#include <vector>

#include "audit/setting.h"
#include "mechanism/mechanism.h"
#include "model/gradient.h"
#include "noise/noise.h"

namespace tacit::audit {

// All that leaves one step: the update over the whole id space, which shows what was written.
struct Update {
  std::vector<float> dense;
  std::vector<uint8_t> written;   // per row of the space
  std::vector<float> values;      // all rows, one after the other
  std::vector<size_t> row_begin;  // per row: of its floats in `values`
};

// The faults of a model.
enum class ModelFault {
  kNone,
  kClipBeforeMask,   // norms over all rows of a unit, written or not
  kMaskOfLastStep,   // norms over the rows that the step before wrote
  kScoresUnclipped,  // a unit's row counts with its whole norm in the rows' scores
};

// Takes steps of one batch through a mechanism as a trainer does, forming norms and sums as a model
// does, from gradients that are given. All that does not depend on noise is made once: an audit is
// millions of steps. Each thread has its own.
class StepRunner {
 public:
  StepRunner(const RowSpace& space, const StepUnits& units, ModelFault fault = ModelFault::kNone);

  const model::Activations& activations() const { return activations_; }
  // `before`: the update of the step before, for the fault that looks at it; may be null.
  void Run(mechanism::Mechanism& mechanism, noise::NoiseSource& noise, const Update* before,
           Update* update);

 private:
  struct UnitRow {
    uint64_t row = 0;
    uint32_t place = 0;  // in Activations::rows
    float squared = 0;
    std::vector<float> gradient;
  };

  void Score(double clip);
  void FormNorms(double grid_step, const Update* before);
  void FormSum(double grid_step);
  void Publish(mechanism::Mechanism& mechanism, noise::NoiseSource& noise, Update* update);

  const RowSpace& space_;
  const ModelFault fault_;
  model::Activations activations_;
  std::vector<std::vector<float>> dense_;  // per unit
  std::vector<std::vector<UnitRow>> rows_;
  std::vector<double> scores_;
  // The rows selected in the step under way.
  model::RowSelection selection_;
  model::StepGradient sum_;
  model::GroupNorms norms_;
  std::vector<float> scales_;
};

}  // namespace tacit::audit
