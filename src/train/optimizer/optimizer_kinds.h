#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/moving_average.h"

// The kinds of optimiser, one row each. A kind is its functions: no class and no enumeration names
// it, so a test can train by a row of its own.
namespace tacit::train {

struct OptimizerOptions;

// base^k, from a table for small k.
class Powers {
 public:
  explicit Powers(double base);
  double operator()(uint32_t k) const;

 private:
  double base_;
  std::vector<double> small_;
};

// The step under way, as the functions of a kind see it.
struct OptimizerStep {
  const OptimizerOptions& options;
  const MovingAverage& average;
  const Powers &beta1, &beta2;
  uint32_t step = 0;              // counts from 1
  double power1 = 0, power2 = 0;  // beta1^step, beta2^step
  float average_keep = 0;         // Keep(step - 1, step)
  bool lazy = false;              // rows' moments decay at the learner's steps
  float noise_variance = 0;       // dense, corrected like the second moment; 0: not subtracted
};

// A row with its update: the embedding followed by its state.
struct RowUpdate {
  std::span<const float> gradient;
  std::span<float> row;
};

// The size of some state: so much for each number, and so much beside.
struct StateFloats {
  size_t per_number = 0, fixed = 0;
  size_t operator()(size_t n) const { return per_number * n + fixed; }
};

struct OptimizerKind {
  std::string_view name;  // optimizer.kind
  // Its number in the fingerprints of stored state. Never changes; adam-bc has adam's, beside the
  // mark of subtracted noise.
  int stored_as = 0;
  // It corrects for the number of steps, which the dense state keeps.
  bool counts_steps = false;
  // Moments::kLazy is possible.
  bool may_be_lazy = false;
  // It needs the noise of a step, whose averaged variance the dense state keeps.
  bool subtracts_noise = false;
  // Without momentum and average a step moves weights by a multiple of G, so that the noise of
  // steps adds up (lab::LazyDense).
  bool linear = false;
  // Floats of state of dense parameters and of a row, without counts of steps and averages.
  StateFloats (*dense_floats)(const OptimizerOptions& options);
  StateFloats (*row_floats)(const OptimizerOptions& options);
  // Updates `count` of n dense parameters. Their first moments begin at `state`; second moments
  // follow n floats later.
  void (*step_dense)(const OptimizerStep& step, const float* gradient, size_t count, float* weights,
                     float* state, size_t n);
  // Updates rows, by EachRow of the kind's function for one: the one indirect call is for them all.
  void (*step_rows)(const OptimizerStep& step, std::span<const RowUpdate> rows);
};

std::span<const OptimizerKind> AllOptimizers();
// REQUIRES the name of one of these kinds.
const OptimizerKind* OptimizerNamed(std::string_view name,
                                    std::span<const OptimizerKind> kinds = AllOptimizers());

// average = weights + keep * (average - weights). With keep 0 the average becomes the weights,
// over what it held before.
void MoveAverage(const float* weights, size_t n, float keep, float* average);
// Brings the average of a row's weights up to the step before this one; returns the step of the
// row's last write.
uint32_t BeginAveragedRow(const OptimizerStep& step, const RowUpdate& update);
// Adds the row's new weights to their average, and notes the write.
void EndAveragedRow(const OptimizerStep& step, const RowUpdate& update);

// Applies `step_row` to each row: (step, gradient, n, last, row), where `last` is the step of the
// row's last write if it is stored, and the row's state begins at row + n.
template <auto step_row>
void EachRow(const OptimizerStep& step, std::span<const RowUpdate> rows) {
  const bool kept = step.lazy || step.average.on();  // the step of the last write
  for (const RowUpdate& update : rows) {
    const uint32_t last = kept ? BeginAveragedRow(step, update) : 0;
    step_row(step, update.gradient.data(), update.gradient.size(), last, update.row.data());
    if (kept) EndAveragedRow(step, update);
  }
}

}  // namespace tacit::train
