#include "cuda/learn/step_memory.h"

namespace tacit::cuda {

Status StepMemory::TakePasses(const Sizes& sizes, BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(taker.TakeEach(sizes.examples, {&logits, &loss, &dlogit}));
  TACIT_RETURN_IF_ERROR(taker.TakeEach(sizes.examples, {&logits_host, &loss_host}));
  TACIT_RETURN_IF_ERROR(taker.TakeEach(sizes.groups * sizes.chunk_units, {&squared, &unit_scale}));
  TACIT_RETURN_IF_ERROR(taker.Take(sizes.groups * sizes.chunk_examples, &example_scale));
  TACIT_RETURN_IF_ERROR(taker.Take(sizes.chunk_units, &coordinates));
  return taker.Take(sizes.chunk_units, &bounded);
}

Status StepMemory::TakeSums(uint64_t entries, uint32_t stride, BufferTaker taker) {
  return taker.Take(entries * stride, &row_sums);
}

Status StepMemory::TakePlanned(const train::GpuStepLayout& step, uint32_t groups, uint32_t stride,
                               bool lists_written, BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(TakePasses({.examples = step.examples,
                                    .chunk_examples = step.chunk_examples,
                                    .chunk_units = step.chunk_units,
                                    .groups = groups},
                                   taker));
  if (lists_written)
    TACIT_RETURN_IF_ERROR(taker.Take(step.entries + step.extra_rows, &written_host));
  return TakeSums(step.entries, stride, taker);
}

}  // namespace tacit::cuda
