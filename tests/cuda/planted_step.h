#pragma once

// Faults in the kernels of a step, planted where tests ask for them.
namespace tacit::cuda::testing {

enum class StepFault {
  kNone,
  kNoNoise,         // the update's noise is left out
  kRowsNotStepped,  // FinishRows does nothing
  kRowsMarkedOnly,  // FinishRows reports rows as changed, which have no noise
  kMissingBarrier,  // warps multiply before all of a stage is there
};
void PlantInFinish(StepFault fault);
void PlantInGemm(StepFault fault);

}  // namespace tacit::cuda::testing
