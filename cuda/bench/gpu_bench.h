#pragma once

#include <vector>

#include "bench/suite.h"

namespace tacit::cuda {

// The benchmarks of `tacit bench gpu`, each of which opens the machine's first GPU. None runs
// unless it is named. In a program that was built without CUDA one stands in their place, which
// says so.
std::vector<bench::Bench> GpuBenches();

}  // namespace tacit::cuda
