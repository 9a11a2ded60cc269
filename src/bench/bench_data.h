#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "stream/steps/participation.h"
#include "wiring/assembly.h"

namespace tacit::bench {

// The pCTR model at the published vocabulary sizes, 4 x 598, batch 2048, DP-AdaFEST at epsilon 8.
struct BenchSetup {
  wiring::Assembly assembly;
  std::vector<stream::StepBatch> steps;  // generated events, cut into full batches
};

// `compute` is f32 or bf16. With `private_mechanism` false, the same setup without privacy.
// `sigma_ratio`: the noise of the selection over that of the gradient; 3 is the demo's.
Result<BenchSetup> MakeBenchSetup(const std::string& compute, bool private_mechanism, size_t steps,
                                  double sigma_ratio = 3);

// The median; of an even number of values, the upper one in the middle. REQUIRES at least one
// value.
double Median(std::vector<double> values);

// Median seconds of one call. Repeats the call (at least three times) for about this long.
double MedianSeconds(const std::function<void()>& call, std::chrono::milliseconds about);

}  // namespace tacit::bench
