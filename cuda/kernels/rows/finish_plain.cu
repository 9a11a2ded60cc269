// The end of a step that promises no privacy: the update is the sum, divided, and nothing is added.
// A file of its own, so that no parameter turns noise off in finish.cu. A thread has 16 numbers.
//   bytes:      those of finish.cu
//   operations: some 10 a number
// Memory bounds all.
#include "cuda/device/kernel.h"
#include "cuda/kernels/rows/finish_plain.h"
#include "cuda/kernels/rows/finish_step.h"
#include "mechanism/nearest.h"

namespace tacit::cuda {
namespace {

TACIT_KERNEL PlainDenseKernel(double factor, const OptimizerRule* at_rule, DensePart part,
                              DeviceSpan<const float> sums, DenseParameters parameters) {
  const uint64_t begin = part.begin + GlobalThread() * kStepNumbers;
  if (begin >= part.end) return;
  const uint64_t left = part.end - begin;
  const auto count = static_cast<uint32_t>(left < kStepNumbers ? left : kStepNumbers);
  const OptimizerRule rule = *at_rule;
  TACIT_UNROLL
  for (uint32_t four = 0; four < kStepNumbers; four += 4) {
    if (four >= count) break;
    auto update = LoadVector<4>(sums.data + begin + four, count - four);
    TACIT_UNROLL
    for (uint32_t j = 0; j < 4; ++j) update.x[j] = static_cast<float>(update.x[j] * factor);
    StepFour(rule, parameters, begin + four, count - four, update.x);
  }
}

struct PlainUpdateOf {
  double scale;
  const Row& row;
  TACIT_IN_KERNEL void operator()(uint32_t part, float (&update)[kStepNumbers]) const {
    int64_t steps[kStepNumbers];
    SumsOf(row, part, steps);
    TACIT_UNROLL
    for (uint32_t i = 0; i < kStepNumbers; ++i)
      update[i] = static_cast<float>(mechanism::ToDouble(steps[i]) * scale);
  }
};

TACIT_KERNEL PlainRowsKernel(double scale, const OptimizerRule* at_rule, RowPlaces places,
                             WrittenRows written, RowSums sums, uint32_t group) {
  const uint64_t i = GlobalThread() / group;
  const Share share{group, static_cast<uint32_t>(GlobalThread() % group)};
  const bool real = i < written.all[0] && i < written.row.size;
  const OptimizerRule rule = *at_rule;
  const uint32_t name = real ? written.name[i] : 0;
  const Row row = real ? RowOf(places, written.row[i], name, sums, i) : Row();
  StepRow(rule, real, row, share, PlainUpdateOf{scale, row});
  if (real && share.mine == 0 && written.changed.size > 0) written.changed[name] = 1;
}

runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kFinishBlock), .block = {kFinishBlock}, .shared_bytes = 0};
}

}  // namespace

Status FinishDensePlain(Stream& stream, double factor, DeviceSpan<const OptimizerRule> rule,
                        const DensePart& part, DeviceSpan<const float> sums,
                        const DenseParameters& parameters) {
  CheckPart(part, sums, parameters);
  const uint64_t threads = (part.end - part.begin + kStepNumbers - 1) / kStepNumbers;
  return Launch(stream, "FinishDensePlain", Threads(threads), PlainDenseKernel, factor,
                RuleOf(rule), part, sums, parameters);
}

Status FinishRowsPlain(Stream& stream, double scale, DeviceSpan<const OptimizerRule> rule,
                       const RowPlaces& places, const WrittenRows& written, const RowSums& sums) {
  TACIT_CHECK(written.name.size == written.row.size && written.all.size == 1 && sums.places > 0);
  const uint32_t group = GroupOf(sums);
  return Launch(stream, "FinishRowsPlain", Threads(written.row.size * group), PlainRowsKernel,
                scale, RuleOf(rule), places, written, sums, group);
}

}  // namespace tacit::cuda
