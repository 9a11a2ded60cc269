#pragma once

#include <cstdint>

#include "model/pctr.h"

// The sizes of a click model's scoring on a GPU, for the GPU and for plans of memory.
namespace tacit::train {

// The most examples of a pass: a request of as many rows as may be is one.
inline constexpr uint32_t kGpuScoreExamples = 4096;
// The versions whose rows and parameters lie there side by side: the one that is served, and
// a canary or the one before.
inline constexpr uint32_t kGpuScoreVersions = 2;

struct GpuScoreOptions {
  model::PctrOptions model;
  uint64_t cache_bytes = 0;  // of device memory, for embeddings of all versions
  uint32_t examples = kGpuScoreExamples;
};

struct GpuScoreSizes {
  uint32_t examples = 0, slots = 0;
  uint32_t stride = 0;   // floats from one place to the next
  uint64_t entries = 0;  // of one pass
  uint64_t places = 0;   // of rows, per version
  uint64_t fetched = 0;  // rows that one pass may bring
  uint64_t input_words = 0;
};
GpuScoreSizes SizesOfGpuScoring(const GpuScoreOptions& options);

// The host memory beside it: pinned, and the list of what lies there.
uint64_t GpuScorePinnedBytes(const GpuScoreSizes& sizes);
uint64_t GpuScoreIndexBytes(const GpuScoreSizes& sizes);
// The slots of the list of a version's rows, at 16 bytes each: at most half of them are used.
uint64_t GpuScoreIndexSlots(uint64_t places);

}  // namespace tacit::train
