// gemm16.cu with a fault: its barrier may be left out.
#include "cuda/device/kernel.h"
#include "cuda/planted_step.h"

namespace tacit::cuda {
namespace {

testing::StepFault planted = testing::StepFault::kNone;

void PlantedSyncBlock() {
  if (planted != testing::StepFault::kMissingBarrier) SyncBlock();
}

}  // namespace

void testing::PlantInGemm(StepFault fault) { planted = fault; }

}  // namespace tacit::cuda

#define SyncBlock PlantedSyncBlock
#include "cuda/kernels/gemm16.cu"
