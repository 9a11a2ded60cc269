#include "train/gpu.h"

namespace tacit::train {

// As cuda/learn/step_staging.cc packs a step; a test compares them.
uint64_t GpuStepPinnedBytes(const GpuStepSizes& sizes) {
  constexpr uint64_t kSmall = 1024;  // a noise key, the optimiser's rule, counts
  const auto aligned = [](uint64_t words) { return (words + 3) / 4 * 4; };
  const bool one_chunk = sizes.examples <= kGpuChunkExamples;
  const uint64_t examples =
      one_chunk
          ? std::min<uint64_t>(kGpuChunkExamples, GpuRoundedUp(sizes.examples, kGpuRoundExamples))
          : sizes.examples;
  const uint64_t slots = sizes.slots;
  const uint64_t entries =
      slots == 0 ? 0 : GpuRoundedUp((sizes.entries + slots - 1) / slots, kGpuRoundExamples) * slots;
  const uint64_t units = GpuRoundedUp(sizes.examples, kGpuRoundExamples);
  const uint64_t step = aligned(1) + aligned(entries) + aligned(examples * slots) +
                        (one_chunk ? 1 : 2) * (aligned(examples) + aligned(units)) +
                        aligned(examples * sizes.dense_width) + aligned(examples);
  const uint64_t extra =
      (sizes.extra_rows + kGpuRoundExamples - 1) / kGpuRoundExamples * kGpuRoundExamples;
  const uint64_t written = sizes.lists_written ? entries + extra : 0;
  return sizeof(float) * (2 * step + 2 * sizes.examples + written) + kSmall;
}

}  // namespace tacit::train
