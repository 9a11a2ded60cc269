#include "cuda/bench/gpu_bench.h"

#include <string>

#include "cuda/bench/gpu_sizes.h"
#include "cuda/bench/parts.h"

namespace tacit::cuda {

std::vector<bench::Bench> GpuBenches() {
  using Part = Result<std::vector<bench::BenchRow>> (*)(const GpuSizes&);
  const auto make = [](const char* name, const char* what, Part part) {
    return bench::Bench{name, std::string(what) + "; only when named",
                        [part](const bench::BenchRequest& request) {
                          return part(request.quick ? GpuSizes::Small() : GpuSizes());
                        },
                        true};
  };
  return {make("gpu-products", "copies and bf16 products of a GPU", BenchProducts),
          make("gpu-noise", "grid noise on a GPU, beside its keystream", BenchGridNoise),
          make("gpu-step", "the private pCTR step on a GPU, beside its products", BenchClickSteps),
          make("gpu-tables", "dense DP-SGD and AdaFEST on a GPU, by vocabulary", BenchTables),
          make("gpu-rows", "the row cache of a GPU", BenchRowCache),
          make("gpu-attention", "attention of a transformer on a GPU, beside its bytes or products",
               BenchAttention),
          make("gpu-sequence", "the private step of a transformer on a GPU", BenchSequences),
          make("gpu-score", "requests of the click model on a GPU, beside the CPU", BenchScoring)};
}

}  // namespace tacit::cuda
