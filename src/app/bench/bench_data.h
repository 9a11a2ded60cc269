#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "app/assembly.h"
#include "stream/participation.h"

namespace tacit::app {

// The pCTR model at the published vocabulary sizes, 4 x 598, batch 2048, DP-AdaFEST at epsilon 8.
struct BenchSetup {
  Assembly assembly;
  std::vector<stream::StepBatch> steps;  // generated events, cut into full batches
};

// `compute` is f32 or bf16; `private_mechanism` false: the same without privacy.
Result<BenchSetup> MakeBenchSetup(const std::string& compute, bool private_mechanism, size_t steps);

// Median seconds of one call, over calls for about so long (at least three).
double MedianSeconds(const std::function<void()>& call, std::chrono::milliseconds about);

}  // namespace tacit::app
