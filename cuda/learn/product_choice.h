#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "cuda/device/blas.h"
#include "train/engines/gpu.h"

namespace tacit::cuda {

struct ProductOptions {
  train::GpuProducts by = train::GpuProducts::kOwn;
  // The rows of a step for which kAuto chooses; 0: as many as a net has room for.
  uint32_t usual_rows = 0;
  // For tests: another library, and a clock in the host's place.
  const char* library = kBlasLibrary;
  const Clock* clock = nullptr;
};

// Puts all products of a step on the stream; by the library, if there is one, else our own.
using PutProducts = std::function<Status(Blas* library)>;

// The library that multiplies a net's bf16 matrices, loaded and checked; null where our own
// products do. kAuto times what `put` puts on the stream, as a graph, once with each, and logs
// which it takes; where the library cannot be loaded, it says so and takes our own. Fails as Load
// and CheckLibrary do.
Result<std::unique_ptr<Blas>> ChooseProducts(Stream& stream, const ProductOptions& options,
                                             const PutProducts& put);

}  // namespace tacit::cuda
