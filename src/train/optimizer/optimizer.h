#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/moving_average.h"
#include "base/threads/worker_pool.h"
#include "train/optimizer/optimizer_kinds.h"

namespace tacit::train {

struct OptimizerOptions {
  // The rule that decays the moments of an embedding row, which is not written at every step.
  enum class Moments {
    kOwn,   // at the row's own writes, corrected for their number
    kLazy,  // at the learner's steps: a step without a write counts as a zero gradient
  };
  const OptimizerKind* kind = OptimizerNamed("adam");
  float learning_rate = 0.001f;
  float row_learning_rate = 0.001f;
  float momentum = 0;                                   // sgd, dense only; 0: none
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;  // adam, adam-bc; adagrad: epsilon
  Moments moments = Moments::kOwn;                      // adam, adam-bc
  float variance_floor = 1e-8f;  // adam-bc: least second moment left of dense parameters
  double average_decay = 0;      // moving average of the weights, for serving; 0: none
};

// Turns updates G into new parameters. All of it is post-processing of a noisy G and costs no
// privacy.
//
//   sgd      w -= rate u,  u = momentum u + G
//   adagrad  w -= rate G / (sqrt(s) + epsilon),  s += G^2; a row has one s, of the mean of G^2
//   adam     w -= rate m' / (sqrt(v') + epsilon), m' and v' the moments corrected for their bias
//   adam-bc  w -= rate m' / sqrt(max(v' - p', variance_floor)), p' the corrected average of the
//            noise's variance on each number (DP-AdamBC, Tang and Lecuyer 2023): the rest is the
//            gradient's own second moment. Rows move as with adam.
//
// Lazy moments are those that Adam on the whole table would have. Adam's steps in between, along
// the rest of m, are not taken: a row that is not written must not move.
//
// State is stored after its values: dense [u | s | m, v], [p when noise is subtracted], the average
// (MovingAverage), the step; a row [s | m, v], [its count of writes with own moments], the average,
// the step of its last write. Unused parts take no space. Counts are CountAsFloat.
//
// A step is StepDense, then StepRows for all rows, in parts, from any number of threads at once.
class Optimizer {
 public:
  explicit Optimizer(const OptimizerOptions& options);

  const OptimizerOptions& options() const { return options_; }
  size_t DenseStateFloats(size_t n) const;
  // Floats of state after a row of this width.
  size_t RowStateFloats(size_t dim) const;

  // The dense state of other parameters, made out of that of `before` parameters: parameter i was
  // number origin[i] of them, or is new (kNew) and begins without moments. `parameters` are their
  // values. REQUIRES a state of DenseStateFloats(before).
  static constexpr size_t kNew = ~size_t{0};
  std::vector<float> MovedDenseState(std::span<const float> state, size_t before,
                                     std::span<const size_t> origin,
                                     std::span<const float> parameters) const;

  // Fills in a row of `dim` numbers, with its state, out of a row of `before` numbers: it keeps the
  // numbers that both have. The others stay as `is` has them, and begin without moments; their
  // average begins as they are. REQUIRES whole rows, and zeros behind the numbers of `is`.
  void MoveRow(std::span<const float> was, size_t before, std::span<float> is, size_t dim) const;

  // Begins a step and updates the dense parameters, split over the workers. Each element is on its
  // own, so the split does not change a bit. `noise_stddev` is that of the noise on each number of
  // the gradient; REQUIRES a value above 0 if noise is to be subtracted.
  void StepDense(std::span<const float> gradient, double noise_stddev, std::span<float> parameters,
                 std::span<float> state, WorkerPool& workers);
  // Updates rows in that step, each at most once.
  void StepRows(std::span<const RowUpdate> rows) const;

 private:
  const OptimizerKind& kind() const { return *options_.kind; }
  bool lazy() const {
    return kind().may_be_lazy && options_.moments == OptimizerOptions::Moments::kLazy;
  }
  void BeginStep(std::span<float> state);
  OptimizerStep StepUnderWay() const;

  const OptimizerOptions options_;
  const MovingAverage average_;
  const Powers beta1_, beta2_;
  const StateFloats dense_floats_, row_floats_;
  // State of the step under way; steps count from 1.
  uint32_t step_ = 0;
  double power1_ = 0, power2_ = 0;  // beta1^step, beta2^step
  float average_keep_ = 0;          // Keep(step - 1, step)
};

// The part of a learner's fingerprint that says how its optimiser's state is laid out and read.
// `of_rows`: there are rows with state, too.
std::string FingerprintText(const OptimizerOptions& options, bool of_rows);

}  // namespace tacit::train
