#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacit::cuda {

// The sizes that the benchmarks work on. The small ones show that a benchmark runs; what it then
// prints means nothing.
struct GpuSizes {
  double seconds = 0.3;  // about as long is measured for one figure
  size_t copy_bytes = size_t{4} << 30;
  uint32_t square = 8192;  // the matrices of the product that is the limit
  std::vector<uint64_t> batches = {16384, 2048};
  std::vector<uint32_t> hidden = {598, 598, 598, 598};
  size_t noise_numbers = size_t{1} << 28;
  std::vector<uint64_t> vocabularies = {100'000, 10'000'000, 100'000'000};
  uint64_t dense_from = 10'000'000;  // the smallest vocabulary that dense DP-SGD is timed on
  uint32_t index_buckets = 1 << 16;
  uint32_t look_ups = 1 << 20;
  uint64_t cache_rows = 10'000'000;
  uint32_t cache_examples = 2048;
  uint32_t cache_steps = 100, cache_warm_steps = 200;
  uint32_t sequences = 512, length = 200, catalogue = 3417, width = 64;
  double commit_seconds = 4, commit_every = 1;
  std::vector<uint32_t> scored_rows = {4096, 1024, 256};  // of a request; the largest first
  uint64_t score_cache_bytes = 256 << 20;

  static GpuSizes Small() {
    GpuSizes sizes;
    sizes.seconds = 0;
    sizes.copy_bytes = 1 << 16;
    sizes.square = 128;
    sizes.batches = {32};
    sizes.hidden = {16, 8};
    sizes.noise_numbers = 1 << 12;
    sizes.vocabularies = {2000, 4000};
    sizes.dense_from = 4000;
    sizes.index_buckets = 4;
    sizes.look_ups = 256;
    sizes.cache_rows = 3000;
    sizes.cache_examples = 16;
    sizes.cache_steps = 4;
    sizes.cache_warm_steps = 4;
    sizes.sequences = 3;
    sizes.length = 6;
    sizes.catalogue = 20;
    sizes.width = 8;
    sizes.commit_seconds = sizes.commit_every = 0;
    sizes.scored_rows = {24, 8};
    sizes.score_cache_bytes = 1 << 20;
    return sizes;
  }
};

}  // namespace tacit::cuda
