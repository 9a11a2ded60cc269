#pragma once

#include <cstdint>

// Faults in the kernels of a step, planted where tests ask for them.
namespace tacit::cuda::testing {

enum class StepFault {
  kNone,
  kNoNoise,            // the update's noise is left out
  kNoDenseNoise,       // that of the dense parameters
  kNoNoiseWithoutSum,  // that of rows that no unit touched
  kHalfNoise,          // it is half as large
  kSameNoise,          // it does not depend on the step's key
  kSharedNoise,        // rows that are `period` places apart share it
  kSharedDenseNoise,   // dense parameters that are `period` places apart share it
  kNoSelectionNoise,   // the noise of the selection is left out
  kRowsNotStepped,     // FinishRows does nothing
  kRowsMarkedOnly,     // FinishRows reports rows as changed, which have no noise
  kNoMask,             // a product's end leaves out the mask of ReLU's gradient
  kBiasTwice,          // a product's end adds the bias twice
  kNoOnes,             // a product's end forgets the column of ones
  kSquaresOfALane,     // a product's end takes one lane's squares, the second's, for those of a row
  kEndOfAPart,         // a product ends after a half of its inner dimension
  kMissingBarrier,     // warps multiply before all of a stage is there
};
void PlantInFinish(StepFault fault, uint64_t period = 0);
void PlantInSelect(StepFault fault);
void PlantInGemm(StepFault fault);

}  // namespace tacit::cuda::testing
