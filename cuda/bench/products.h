#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

struct ProductLayer {
  uint32_t in = 0, out = 0;
};

// The products of a network's step, and nothing beside them, on bf16 matrices of random numbers:
// per layer the outputs, the inputs' gradient, and the weights' gradient.
class StepProducts {
 public:
  static Result<std::unique_ptr<StepProducts>> Make(Stream& stream,
                                                    const std::vector<ProductLayer>& layers,
                                                    uint32_t rows);
  virtual ~StepProducts() = default;
  // Puts all of them on the stream.
  virtual Status Put(Stream& stream) = 0;
  virtual double operations() const = 0;
};

}  // namespace tacit::cuda
