// select.cu with a fault: the noise of its counts may be left out.
#include "cuda/device/kernel.h"
#include "cuda/kernels/noise/grid_draw.h"
#include "unit/cuda/planted_step.h"

namespace tacit::cuda {
namespace {

testing::StepFault planted = testing::StepFault::kNone;

int64_t PlantedDrawOne(const uint32_t (&key)[kKeyWords], uint64_t query, uint64_t place,
                       const noise::GridScale& scale) {
  if (planted == testing::StepFault::kNoSelectionNoise) return 0;
  return DrawOne(key, query, place, scale);
}

}  // namespace

void testing::PlantInSelect(StepFault fault) { planted = fault; }

}  // namespace tacit::cuda

#define DrawOne PlantedDrawOne
#include "cuda/kernels/rows/select.cu"
