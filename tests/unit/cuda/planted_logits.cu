// logits.cu with faults: the prior and the mask go through functions that may change them.
#define FillPrior RightFillPrior
#define MaskSeen RightMaskSeen
#include "cuda/kernels/sequence/logits.cu"
#undef FillPrior
#undef MaskSeen
#include "unit/cuda/planted_sequence.h"

namespace tacit::cuda {
namespace {

using testing::SequenceFault;

SequenceFault planted_logits = SequenceFault::kNone;

TACIT_KERNEL MaskTargetsKernel(DeviceSpan<const uint32_t> target, DeviceMatrix<float> logits) {
  const uint64_t i = GlobalThread();
  if (i < target.size) logits.Row(i)[target[i]] = kNever;
}

TACIT_KERNEL NextItemKernel(DeviceSpan<const float> each, DeviceMatrix<float> logits) {
  const uint64_t i = GlobalThread(), r = i / logits.cols, c = i % logits.cols;
  if (r < logits.rows) logits.Row(r)[c] = each[(c + 1) % logits.cols];
}

}  // namespace

void testing::PlantInLogits(SequenceFault fault) { planted_logits = fault; }

Status FillPrior(Stream& stream, const PredictingRows& rows, const PriorLogits& prior,
                 DeviceMatrix<float> logits) {
  PriorLogits given = prior;
  if (planted_logits == SequenceFault::kNoPrior) given.each = given.table = {};
  if (planted_logits == SequenceFault::kPriorWithoutDecay) given.decay = 1;
  if (planted_logits == SequenceFault::kPriorOfOthers && prior.each.size > 0) {
    const uint64_t numbers = uint64_t{logits.rows} * logits.cols;
    return Launch(stream, "NextItem",
                  {.grid = BlocksFor(numbers, 64), .block = {64}, .shared_bytes = 0},
                  NextItemKernel, prior.each, logits);
  }
  return RightFillPrior(stream, rows, given, logits);
}

Status MaskSeen(Stream& stream, const PredictingRows& rows, DeviceSpan<const uint32_t> target,
                DeviceMatrix<float> logits) {
  if (planted_logits == SequenceFault::kNoMask) return {};
  TACIT_RETURN_IF_ERROR(RightMaskSeen(stream, rows, target, logits));
  if (planted_logits != SequenceFault::kTargetsMasked || target.size == 0) return {};
  return Launch(stream, "MaskTargets",
                {.grid = BlocksFor(target.size, 64), .block = {64}, .shared_bytes = 0},
                MaskTargetsKernel, target, logits);
}

}  // namespace tacit::cuda
