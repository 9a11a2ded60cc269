#include "train/engines/gpu_scoring.h"

#include <algorithm>
#include <bit>

namespace tacit::train {

GpuScoreSizes SizesOfGpuScoring(const GpuScoreOptions& options) {
  const RowSpace& space = options.model.space;
  GpuScoreSizes sizes{.examples = options.examples,
                      .slots = static_cast<uint32_t>(space.tables().size())};
  // Multiples of 16 bytes, so that rows are read by fours.
  sizes.stride = (space.max_dim() + 3) / 4 * 4;
  sizes.entries = uint64_t{sizes.examples} * sizes.slots;
  if (sizes.slots > 0) {
    // Places of all versions are numbered with 32 bits.
    constexpr uint64_t kPlacesMost = UINT32_MAX / kGpuScoreVersions;
    const uint64_t wanted = options.cache_bytes / kGpuScoreVersions / (sizes.stride * 4);
    sizes.places = std::clamp<uint64_t>(wanted, 1, std::min(space.rows(), kPlacesMost));
  }
  sizes.fetched = std::min(sizes.entries, sizes.places);
  const auto aligned = [](uint64_t words) { return (words + 3) / 4 * 4; };
  sizes.input_words = aligned(sizes.entries) + aligned(uint64_t{sizes.examples} * sizes.slots) +
                      aligned(uint64_t{sizes.examples} * options.model.dense_width);
  return sizes;
}

// As cuda/learn/pctr_scorer.cc takes it; a test compares them.
uint64_t GpuScorePinnedBytes(const GpuScoreSizes& sizes) {
  return sizeof(float) * (sizes.fetched * sizes.stride + sizes.input_words + sizes.examples);
}

uint64_t GpuScoreIndexSlots(uint64_t places) { return places == 0 ? 0 : std::bit_ceil(2 * places); }

uint64_t GpuScoreIndexBytes(const GpuScoreSizes& sizes) {
  constexpr uint64_t kSlot = 16;
  return kGpuScoreVersions * kSlot * GpuScoreIndexSlots(sizes.places) +
         sizes.entries * (2 * sizeof(uint32_t) + sizeof(uint64_t));
}

}  // namespace tacit::train
