#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/kernels/parts/matrix.h"
#include "cuda/kernels/rows/step_rows.h"
#include "cuda/learn/step_chunks.h"
#include "stream/steps/participation.h"
#include "train/engines/gpu.h"

namespace tacit::cuda {

struct StepStagingOptions {
  uint32_t slots = 0;  // of an example; 0: a model without tables
  uint32_t dense_width = 0;
  uint64_t space_rows = 0;
  uint32_t chunk_examples = 0;  // that go through the model at a time
  // A step in one chunk is filled up to multiples of at most these examples and units, and of
  // the entries of these examples, with what is nobody's (step_rows.h); a small step to smaller
  // ones. So its kernels have few sizes.
  uint32_t round_examples = train::kGpuRoundExamples;
};

// A step in device memory.
struct StagedStep {
  uint32_t units = 0, examples = 0, entries = 0;  // without what fills it up
  std::vector<StepChunk> chunks;                  // with it, if there is but one
  std::vector<uint32_t> sum_block_end;            // as the step has them
  uint32_t entries_of_unit_max = 0;
  StepEntries of = {};                     // all entries
  DeviceMatrix<const float> numbers = {};  // per example
  DeviceSpan<const float> label = {};
  DeviceSpan<const uint32_t> real_units = {};  // one number: `units`
  // Chunk after chunk: per example its unit, per unit the end of its examples, both counted from
  // the chunk's first.
  DeviceSpan<const uint32_t> unit_of = {}, example_end = {};
  DeviceSpan<const uint32_t> piece_end = {}, piece_closes = {};  // of the chunks' sums
};

// The places of a step's parts, in words, in the one piece of memory that it has.
struct StepParts {
  size_t real = 0, row = 0, cell_end = 0, unit_of = 0, example_end = 0;
  size_t chunk_unit_of = 0, chunk_example_end = 0, piece_end = 0, piece_closes = 0;
  size_t numbers = 0, label = 0, words = 0;
};
StepParts PartsOf(const StagedStep& step);

// The sizes and chunks of a step, without places.
Result<StagedStep> LayOutStep(const stream::StepBatch& step, const StepStagingOptions& options);
// Writes the step's words, and what is still to be known of it. `words` has as many as its parts.
void PackStep(const stream::StepBatch& step, const StepStagingOptions& options,
              std::span<uint32_t> words, StagedStep* laid_out);
// Tells whether a step was packed into these words.
bool IsPackedThere(const stream::StepBatch& step, const StagedStep& packed,
                   std::span<const uint32_t> words);

}  // namespace tacit::cuda
