// Linked when Tacit is built without CUDA.
#include "cuda/bench/gpu_bench.h"

namespace tacit::cuda {

std::vector<bench::Bench> GpuBenches() {
  return {{"gpu", "a GPU's share of its own limits; only when named, in a build with CUDA",
           [](const bench::BenchRequest&) -> Result<std::vector<bench::BenchRow>> {
             return Fail(ErrorCode::kInvalidArgument,
                         "this Tacit was built without CUDA; build it with the preset cuda to "
                         "measure a GPU");
           },
           true}};
}

}  // namespace tacit::cuda
