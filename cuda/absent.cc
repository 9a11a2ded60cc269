// Linked when Tacit is built without CUDA: a caller that asks for a GPU learns so.
#include "cuda/learn/gpu.h"

namespace tacit::cuda {

Result<std::unique_ptr<train::Gpu>> OpenGpu(const train::GpuOptions&) {
  return Fail(ErrorCode::kInvalidArgument,
              "this Tacit was built without CUDA; build it with the preset cuda to use a GPU");
}

}  // namespace tacit::cuda
