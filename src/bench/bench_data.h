#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/histories.h"
#include "stream/steps/participation.h"
#include "wiring/assembly.h"

namespace tacit::bench {

// The pCTR model at the published vocabulary sizes, 4 x 598, DP-AdaFEST at epsilon 8.
struct BenchSetup {
  wiring::Assembly assembly;
  std::vector<stream::StepBatch> steps;  // generated events, cut into full batches
};

struct BenchModel {
  std::string compute = "f32";    // or bf16
  bool private_mechanism = true;  // false: the same setup without privacy
  size_t steps = 1;               // distinct ones
  double sigma_ratio = 3;         // the noise of the selection over that of the gradient
  uint64_t batch = 2048;
  std::vector<uint32_t> hidden = {};  // the network's layers; if empty, the default's
  bool linear = false;                // the linear model of noised sums in its place
};
Result<BenchSetup> MakeBenchSetup(const BenchModel& model);

// Users of one full window each, who take popular items often.
model::Histories FullWindows(uint32_t catalogue, uint32_t length, uint32_t users);

// The median; of an even number of values, the upper one in the middle. REQUIRES at least one
// value.
double Median(std::vector<double> values);

// Median seconds of one call. Repeats the call (at least three times) for about this long.
double MedianSeconds(const std::function<void()>& call, std::chrono::milliseconds about);

}  // namespace tacit::bench
