#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/worker_pool.h"

namespace tacit::train {

struct OptimizerOptions {
  enum class Kind { kSgd, kAdam };
  Kind kind = Kind::kAdam;
  float learning_rate = 0.001f;
  float row_learning_rate = 0.001f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;  // adam
};

// Turns updates G into new parameters. Everything here is post-processing of a noisy G: free.
//
// SGD keeps no state. Adam keeps first and second moments and a step count t; an embedding row has
// its own count, so a row that is seldom written is corrected for its own bias. State lies behind
// what it belongs to: [m (n), v (n), t]. Immutable; thread-safe.
class Optimizer {
 public:
  explicit Optimizer(OptimizerOptions options) : options_(options) {}

  // Floats of state for n dense parameters, or behind a row of this width.
  size_t StateFloats(size_t n) const;

  // Dense parameters, split over the workers; each element is on its own, so the split does not
  // change a bit.
  void StepDense(std::span<const float> gradient, std::span<float> parameters,
                 std::span<float> state, WorkerPool& workers) const;
  // One row: `row` is the embedding with its state behind it.
  void StepRow(std::span<const float> gradient, std::span<float> row) const;

 private:
  OptimizerOptions options_;
};

}  // namespace tacit::train
