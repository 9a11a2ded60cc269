#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

// The sizes of steps on a GPU, for plans of memory.
namespace tacit::train {

// Examples that go through a click model on a GPU at a time, and the most that a step's sizes are
// rounded up to multiples of.
inline constexpr uint32_t kGpuChunkExamples = 16384, kGpuRoundExamples = 256;

// Rounds up to a multiple of an eighth of n's order, and of `most` at most: few sizes, little in
// vain. A larger n is never rounded to less.
constexpr uint64_t GpuRoundedUp(uint64_t n, uint64_t most) {
  const uint64_t to = std::min(most, std::max<uint64_t>(8, std::bit_floor(n) / 8));
  return (std::max<uint64_t>(1, n) + to - 1) / to * to;
}

// The pieces of sums (ops::SumPieces) for which a step of `examples` has room beforehand:
// twice those of full blocks, and more where it is small. A step of more takes more.
constexpr uint64_t GpuPieces(uint64_t examples) { return examples / 128 + 32; }

// The sizes of a click model's largest step for which a GPU has memory beforehand. No examples:
// nothing is planned, and memory is taken as steps ask for it.
struct GpuStepSizes {
  uint64_t examples = 0, entries = 0;  // entries: the examples' rows
  uint64_t unit_entries = 0;           // of one unit; 0: perhaps all
  uint64_t extra_rows = 0;             // written without an example that has them
  uint64_t vocabulary_rows = 0;
  bool lists_written = true;  // rows that are written; not where all are
  uint64_t slots = 0, dense_width = 0;
};

// The most that a step of these sizes, or a smaller one, takes of each kind when it lies on a GPU.
struct GpuStepLayout {
  uint64_t examples = 0, units = 0, entries = 0, extra_rows = 0;  // with what fills a step up
  uint64_t chunk_examples = 0, chunk_units = 0;                   // that go through at a time
  uint64_t named_entries = 0, named_extra_rows = 0;               // without what fills it up
  uint64_t unit_entries = 0, vocabulary_rows = 0;
  uint64_t words = 0;  // of 32 bits, in which it is sent there
};
GpuStepLayout LayOutGpuStep(const GpuStepSizes& sizes, uint32_t chunk_examples = kGpuChunkExamples,
                            uint32_t round_examples = kGpuRoundExamples);

// The pinned memory that steps take on their way to a GPU: this one and the next, the report, and
// what else an engine has for a step.
uint64_t GpuStepPinnedBytes(const GpuStepSizes& sizes);

}  // namespace tacit::train
