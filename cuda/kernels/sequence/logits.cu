// A prior's logits: a thread a crop and item, which goes through the crop's rows in order. The
// mask: a block a crop, a thread a row that predicts.
//   bytes:      a prior's table is read once a row, 4 a logit, and 4 written; the mask writes up to
//               n^2 / 2 single numbers for a crop of n rows, a sector of 32 each
//   operations: two a logit; none
// A sequence of 200 positions over 3,417 items: 5.5 MB for a prior of pairs, 2 us at 3 TB/s, half
// for one of single items; .6 MB for the mask, .2 us. Forecast: 3 us and .5 us a sequence.
// Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/sequence/logits.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128;
constexpr float kNever = -1e30f;  // as model::OutputLayer has it

TACIT_IN_KERNEL uint32_t Before(const DeviceSpan<const uint32_t>& end, uint32_t crop) {
  return crop == 0 ? 0 : end[crop - 1];
}

TACIT_KERNEL PriorKernel(PredictingRows rows, PriorLogits prior, DeviceMatrix<float> logits) {
  const uint32_t crop = BlockIndex().x, b = BlockIndex().y * kBlock + ThreadIndex().x;
  if (b >= logits.cols) return;
  const float own = prior.each.size == 0 ? 0.0f : prior.each[b];
  float running = 0;
  uint32_t i = Before(rows.counted_end, crop);
  const uint32_t last = rows.counted_end[crop];
  for (uint32_t r = Before(rows.crop_end, crop); i < last; ++r) {
    if (prior.table.size > 0)
      running = prior.decay * running + prior.table[uint64_t{rows.item[r]} * logits.cols + b];
    if (rows.counted[i] != r) continue;
    logits.Row(i)[b] = own + running;
    ++i;
  }
}

TACIT_KERNEL MaskKernel(PredictingRows rows, DeviceSpan<const uint32_t> target,
                        DeviceMatrix<float> logits) {
  const uint32_t crop = BlockIndex().x;
  const uint32_t first = Before(rows.crop_end, crop), last = rows.counted_end[crop];
  for (uint32_t i = Before(rows.counted_end, crop) + ThreadIndex().x; i < last; i += kBlock)
    for (uint32_t r = first; r <= rows.counted[i]; ++r)
      if (rows.item[r] != target[i]) logits.Row(i)[rows.item[r]] = kNever;
}

void CheckRows(const PredictingRows& rows, const DeviceMatrix<float>& logits) {
  TACIT_CHECK(rows.counted.size == logits.rows && rows.counted_end.size == rows.crop_end.size &&
              logits.cols > 0);
}

}  // namespace

Status FillPrior(Stream& stream, const PredictingRows& rows, const PriorLogits& prior,
                 DeviceMatrix<float> logits) {
  CheckRows(rows, logits);
  TACIT_CHECK((prior.each.size == 0 || prior.each.size == logits.cols) &&
              (prior.table.size == 0 || prior.table.size == uint64_t{logits.cols} * logits.cols));
  const uint32_t across = (logits.cols + kBlock - 1) / kBlock;
  TACIT_CHECK(across < 65536, "a catalogue of at most 8 M items");
  if (rows.crop_end.size == 0) return {};
  return Launch(stream, "FillPrior",
                {.grid = {static_cast<uint32_t>(rows.crop_end.size), across},
                 .block = {kBlock},
                 .shared_bytes = 0},
                PriorKernel, rows, prior, logits);
}

Status MaskSeen(Stream& stream, const PredictingRows& rows, DeviceSpan<const uint32_t> target,
                DeviceMatrix<float> logits) {
  CheckRows(rows, logits);
  TACIT_CHECK(target.size == logits.rows, "a target per row");
  if (rows.crop_end.size == 0) return {};
  return Launch(
      stream, "MaskSeen",
      {.grid = {static_cast<uint32_t>(rows.crop_end.size)}, .block = {kBlock}, .shared_bytes = 0},
      MaskKernel, rows, target, logits);
}

}  // namespace tacit::cuda
