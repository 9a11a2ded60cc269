#pragma once

#include <vector>

#include "base/result.h"
#include "bench/bench_data.h"
#include "cuda/bench/gpu_sizes.h"
#include "cuda/bench/products.h"

namespace tacit::cuda {

// The click model of the benchmarks in bf16, with this batch.
bench::BenchModel ClickModelOf(const GpuSizes& sizes, uint64_t batch);
// The layers of its network.
Result<std::vector<ProductLayer>> ClickLayers(const GpuSizes& sizes);

}  // namespace tacit::cuda
