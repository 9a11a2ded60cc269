#pragma once

#include <vector>

#include "base/result.h"
#include "bench/suite.h"
#include "cuda/bench/gpu_sizes.h"

// The benchmarks, a file each.
namespace tacit::cuda {

// The device's name, its copies, and products of bf16 matrices: large ones, and those of the click
// model's step.
Result<std::vector<bench::BenchRow>> BenchProducts(const GpuSizes& sizes);
// Noise on the grid beside its keystream.
Result<std::vector<bench::BenchRow>> BenchGridNoise(const GpuSizes& sizes);
// The click model's private step beside its products, and beside the same without privacy; and with
// commits through a store.
Result<std::vector<bench::BenchRow>> BenchClickSteps(const GpuSizes& sizes);
// Dense DP-SGD and AdaFEST by the size of the vocabulary (bench/vocabulary_data.h).
Result<std::vector<bench::BenchRow>> BenchTables(const GpuSizes& sizes);
// The row cache: its index, what it finds, and steps with it beside steps with all rows there.
Result<std::vector<bench::BenchRow>> BenchRowCache(const GpuSizes& sizes);
// Attention of a transformer's block beside its bytes or its products, corrected and not.
Result<std::vector<bench::BenchRow>> BenchAttention(const GpuSizes& sizes);
// The transformer's private step beside its products with the catalogue.
Result<std::vector<bench::BenchRow>> BenchSequences(const GpuSizes& sizes);
// The click model's requests beside one core of the processor.
Result<std::vector<bench::BenchRow>> BenchScoring(const GpuSizes& sizes);

}  // namespace tacit::cuda
