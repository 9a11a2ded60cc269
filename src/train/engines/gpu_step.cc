#include "train/engines/gpu_step.h"

namespace tacit::train {
namespace {

struct Lengths {
  uint64_t examples = 0, units = 0, entries = 0;
};

// As cuda/learn/step_packing.cc packs a step; a test compares them.
uint64_t WordsOf(const GpuStepSizes& sizes, const Lengths& of, bool one_chunk) {
  const auto aligned = [](uint64_t words) { return (words + 3) / 4 * 4; };
  return aligned(1) + aligned(of.entries) + aligned(of.examples * sizes.slots) +
         (one_chunk ? 1 : 2) * (aligned(of.examples) + aligned(of.units)) +
         2 * aligned(GpuPieces(of.examples)) + aligned(of.examples * sizes.dense_width) +
         aligned(of.examples);
}

}  // namespace

// A step that goes through in one chunk is filled up, one of several chunks is not: so each kind
// has a largest one.
GpuStepLayout LayOutGpuStep(const GpuStepSizes& sizes, uint32_t chunk_examples,
                            uint32_t round_examples) {
  if (sizes.examples == 0) return {};
  const uint64_t slots = sizes.slots;
  const uint64_t in_one = std::min<uint64_t>(sizes.examples, chunk_examples);
  const Lengths one = {
      .examples = std::min<uint64_t>(chunk_examples, GpuRoundedUp(in_one, round_examples)),
      .units = GpuRoundedUp(in_one, round_examples),
      .entries = slots == 0
                     ? 0
                     : GpuRoundedUp((sizes.entries + slots - 1) / slots, round_examples) * slots};
  Lengths many;
  if (sizes.examples > chunk_examples)
    many = {sizes.examples, sizes.examples, slots == 0 ? 0 : sizes.entries};
  const uint64_t entries = std::max(one.entries, many.entries);
  return {.examples = std::max(one.examples, many.examples),
          .units = std::max(one.units, many.units),
          .entries = entries,
          .extra_rows = (sizes.extra_rows + round_examples - 1) / round_examples * round_examples,
          .chunk_examples = one.examples,
          .chunk_units = one.units,
          .named_entries = slots == 0 ? 0 : sizes.entries,
          .named_extra_rows = sizes.extra_rows,
          .unit_entries = sizes.unit_entries > 0 ? std::min(sizes.unit_entries, entries) : entries,
          .vocabulary_rows = sizes.vocabulary_rows,
          .words = std::max(WordsOf(sizes, one, true), WordsOf(sizes, many, false))};
}

uint64_t GpuStepPinnedBytes(const GpuStepSizes& sizes) {
  constexpr uint64_t kSmall = 1024;  // a noise key, the optimiser's rule, counts
  const GpuStepLayout step = LayOutGpuStep(sizes);
  const uint64_t written = sizes.lists_written ? step.entries + step.extra_rows : 0;
  return sizeof(float) * (2 * step.words + 2 * step.examples + step.extra_rows + written) + kSmall;
}

}  // namespace tacit::train
