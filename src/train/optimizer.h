#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/moving_average.h"
#include "base/worker_pool.h"

namespace tacit::train {

struct OptimizerOptions {
  enum class Kind { kSgd, kAdagrad, kAdam };
  // How the moments of an embedding row, which is not written at every step, go on.
  enum class Moments {
    kOwn,   // by the row's own writes, and corrected for their number
    kLazy,  // by the learner's steps: as if each without a write had brought a zero gradient
  };
  Kind kind = Kind::kAdam;
  float learning_rate = 0.001f;
  float row_learning_rate = 0.001f;
  float momentum = 0;                                   // sgd, dense only; 0: none
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;  // adam; adagrad: epsilon
  Moments moments = Moments::kOwn;                      // adam
  bool subtract_noise = false;                          // adam, dense only: DP-AdamBC
  float variance_floor = 1e-8f;                         // of what is left of the second moment then
  double average_decay = 0;  // moving average of the weights, for serving; 0: none
};

// Turns updates G into new parameters. Everything here is post-processing of a noisy G: free.
//
//   sgd      w -= rate u,  u = momentum u + G
//   adagrad  w -= rate G / (sqrt(s) + epsilon),  s += G^2; a row has one s, of the mean of G^2
//   adam     w -= rate m' / (sqrt(v') + epsilon), m' and v' the moments corrected for their bias
//   adam, subtract_noise   w -= rate m' / sqrt(max(v' - p', variance_floor)), p' the same average
//   of
//            the noise's variance on each number (Tang and Lecuyer 2023): what is left is the
//            gradient's own second moment
//
// Lazy moments are those that Adam on the whole table would have; the steps it would take in
// between along what is left of m are not taken, for a row that is not written must not move.
//
// State lies behind what it belongs to: dense [u | s | m, v], [p when noise is subtracted], the
// average (MovingAverage), the step; a row [s | m, v], [its count of writes with own moments], the
// average, the step of its last write. What is not used has no place. Counts are CountAsFloat.
//
// A step is StepDense, then StepRow for each row, from any number of threads at once.
class Optimizer {
 public:
  explicit Optimizer(const OptimizerOptions& options);

  const OptimizerOptions& options() const { return options_; }
  size_t DenseStateFloats(size_t n) const;
  // Behind a row of this width.
  size_t RowStateFloats(size_t dim) const;

  // Begins a step: the dense parameters, split over the workers; each element is on its own, so the
  // split does not change a bit. `noise_stddev`: of the noise on each number of the gradient;
  // REQUIRES one above 0 when it is to be subtracted.
  void StepDense(std::span<const float> gradient, double noise_stddev, std::span<float> parameters,
                 std::span<float> state, WorkerPool& workers);
  // One row of that step: `row` is the embedding with its state behind it.
  void StepRow(std::span<const float> gradient, std::span<float> row) const;

 private:
  bool adam() const { return options_.kind == OptimizerOptions::Kind::kAdam; }
  bool momentum() const {
    return options_.kind == OptimizerOptions::Kind::kSgd && options_.momentum > 0;
  }
  bool lazy() const { return adam() && options_.moments == OptimizerOptions::Moments::kLazy; }
  void BeginStep(std::span<float> state);
  void StepDensePart(const float* gradient, size_t count, float variance, float* weights,
                     float* first, size_t n) const;
  // `last`: the step of the row's last write, where that is kept.
  void StepRowWeights(std::span<const float> gradient, uint32_t last, float* row) const;

  // base^k, from a table where k is small.
  class Powers {
   public:
    explicit Powers(double base);
    double operator()(uint32_t k) const;

   private:
    double base_;
    std::vector<double> small_;
  };

  const OptimizerOptions options_;
  const MovingAverage average_;
  const Powers beta1_, beta2_;
  // Of the step under way, counted from 1.
  uint32_t step_ = 0;
  double power1_ = 0, power2_ = 0;  // beta1^step, beta2^step
  float average_keep_ = 0;          // Keep(step - 1, step)
};

}  // namespace tacit::train
