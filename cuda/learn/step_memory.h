#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "train/engines/gpu.h"

namespace tacit::cuda {

// The numbers of a click model's step that are neither its rows nor in its network: of all of it,
// and of one chunk at a time. Grows to the largest step.
struct StepMemory {
  Buffer<float> logits, loss, dlogit;  // per example
  HostBuffer<float> logits_host, loss_host;
  HostBuffer<uint32_t> written_host;  // rows
  // These are of a chunk, with a part for each layer and one for the rows.
  Buffer<float> squared, unit_scale, example_scale;
  Buffer<uint32_t> coordinates;  // per unit
  Buffer<uint8_t> bounded;
  Buffer<int64_t> row_sums;  // without noise; of each entry, as long as the longest row

  struct Sizes {
    uint64_t examples = 0, chunk_examples = 0, chunk_units = 0;
    uint32_t groups = 0;  // layers, and rows
  };
  Status TakePasses(const Sizes& sizes, BufferTaker taker);
  Status TakeSums(uint64_t entries, uint32_t stride, BufferTaker taker);
  // Takes what a planned step asks for, or adds it up; `lists_written` as in GpuStepSizes.
  Status TakePlanned(const train::GpuStepLayout& step, uint32_t groups, uint32_t stride,
                     bool lists_written, BufferTaker taker);
};

}  // namespace tacit::cuda
