#include "train/optimizer/optimizer_kinds.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "train/optimizer/optimizer.h"
#include "train/optimizer/optimizer_math.h"

namespace tacit::train {
namespace {

void Sgd(const float* __restrict gradient, size_t n, float rate, float* __restrict weights) {
  for (size_t i = 0; i < n; ++i) SgdNumber(gradient[i], rate, weights[i]);
}

void Momentum(const float* __restrict gradient, size_t n, float rate, float momentum,
              float* __restrict weights, float* __restrict u) {
  for (size_t i = 0; i < n; ++i) MomentumNumber(gradient[i], rate, momentum, weights[i], u[i]);
}

void Adagrad(const float* __restrict gradient, size_t n, float rate, float epsilon,
             float* __restrict weights, float* __restrict s) {
  for (size_t i = 0; i < n; ++i) AdagradNumber(gradient[i], rate, epsilon, weights[i], s[i]);
}

void RowAdagrad(const float* __restrict gradient, size_t n, float rate, float epsilon,
                float* __restrict weights, float* __restrict s) {
  double squared = 0;
  for (size_t i = 0; i < n; ++i) squared += double{gradient[i]} * gradient[i];
  *s += static_cast<float>(squared / static_cast<double>(n));
  Sgd(gradient, n, rate / (std::sqrt(*s) + epsilon), weights);
}

template <class Numbers>
void StepAdam(const Numbers& step, const float* __restrict gradient, size_t n,
              float* __restrict weights, float* __restrict m, float* __restrict v) {
  for (size_t i = 0; i < n; ++i) step.Step(gradient[i], weights[i], m[i], v[i]);
}

AdamNumbers AdamAt(const OptimizerOptions& options, float rate, double power1, double power2) {
  return MakeAdamNumbers(options.beta1, options.beta2, rate, options.epsilon, power1, power2);
}

StateFloats NoFloats(const OptimizerOptions&) { return {}; }

void SgdDense(const OptimizerStep& step, const float* gradient, size_t count, float* weights,
              float* state, size_t) {
  const OptimizerOptions& o = step.options;
  if (o.momentum > 0) {
    Momentum(gradient, count, o.learning_rate, o.momentum, weights, state);
  } else {
    Sgd(gradient, count, o.learning_rate, weights);
  }
}

void SgdRow(const OptimizerStep& step, const float* gradient, size_t n, uint32_t, float* row) {
  Sgd(gradient, n, step.options.row_learning_rate, row);
}

void AdagradDense(const OptimizerStep& step, const float* gradient, size_t count, float* weights,
                  float* state, size_t) {
  Adagrad(gradient, count, step.options.learning_rate, step.options.epsilon, weights, state);
}

void AdagradRow(const OptimizerStep& step, const float* gradient, size_t n, uint32_t, float* row) {
  RowAdagrad(gradient, n, step.options.row_learning_rate, step.options.epsilon, row, row + n);
}

StateFloats AdamFloats(const OptimizerOptions&) { return {.per_number = 2}; }

// Own moments are corrected for the number of the row's writes, which follows them.
StateFloats AdamRowFloats(const OptimizerOptions& options) {
  const bool own = options.moments != OptimizerOptions::Moments::kLazy;
  return {.per_number = 2, .fixed = own ? size_t{1} : 0};
}

void AdamDense(const OptimizerStep& step, const float* gradient, size_t count, float* weights,
               float* state, size_t n) {
  StepAdam(AdamAt(step.options, step.options.learning_rate, step.power1, step.power2), gradient,
           count, weights, state, state + n);
}

void CorrectedAdamDense(const OptimizerStep& step, const float* gradient, size_t count,
                        float* weights, float* state, size_t n) {
  const OptimizerOptions& o = step.options;
  const CorrectedAdamNumbers adam{.beta1 = o.beta1,
                                  .beta2 = o.beta2,
                                  .rate = static_cast<float>(o.learning_rate / (1 - step.power1)),
                                  .per_correction2 = static_cast<float>(1 / (1 - step.power2)),
                                  .noise = step.noise_variance,
                                  .floor = o.variance_floor};
  StepAdam(adam, gradient, count, weights, state, state + n);
}

void AdamRow(const OptimizerStep& step, const float* gradient, size_t n, uint32_t last,
             float* row) {
  const float rate = step.options.row_learning_rate;
  float* const state = row + n;
  if (step.lazy) {
    AdamNumbers adam = AdamAt(step.options, rate, step.power1, step.power2);
    adam.keep1 = static_cast<float>(step.beta1(step.step - last));
    adam.keep2 = static_cast<float>(step.beta2(step.step - last));
    StepAdam(adam, gradient, n, row, state, state + n);
    return;
  }
  float& stored = state[2 * n];
  const uint32_t count = CountOf(stored) + 1;
  stored = CountAsFloat(count);
  StepAdam(AdamAt(step.options, rate, step.beta1(count), step.beta2(count)), gradient, n, row,
           state, state + n);
}

constexpr OptimizerKind kOptimizers[] = {
    {.name = "sgd",
     .stored_as = 0,
     .linear = true,
     .dense_floats = [](const OptimizerOptions& o) -> StateFloats {
       return {.per_number = o.momentum > 0 ? size_t{1} : 0};
     },
     .row_floats = NoFloats,
     .step_dense = SgdDense,
     .step_rows = EachRow<SgdRow>},
    {.name = "adagrad",
     .stored_as = 1,
     .dense_floats = [](const OptimizerOptions&) -> StateFloats { return {.per_number = 1}; },
     .row_floats = [](const OptimizerOptions&) -> StateFloats { return {.fixed = 1}; },
     .step_dense = AdagradDense,
     .step_rows = EachRow<AdagradRow>},
    {.name = "adam",
     .stored_as = 2,
     .counts_steps = true,
     .may_be_lazy = true,
     .dense_floats = AdamFloats,
     .row_floats = AdamRowFloats,
     .step_dense = AdamDense,
     .step_rows = EachRow<AdamRow>},
    {.name = "adam-bc",
     .stored_as = 2,
     .counts_steps = true,
     .may_be_lazy = true,
     .subtracts_noise = true,
     .dense_floats = AdamFloats,
     .row_floats = AdamRowFloats,
     .step_dense = CorrectedAdamDense,
     .step_rows = EachRow<AdamRow>}};

}  // namespace

Powers::Powers(double base) : base_(base), small_(64) {
  for (size_t k = 0; k < small_.size(); ++k) small_[k] = std::pow(base, k);
}

double Powers::operator()(uint32_t k) const {
  return k < small_.size() ? small_[k] : std::pow(base_, k);
}

std::span<const OptimizerKind> AllOptimizers() { return kOptimizers; }

const OptimizerKind* OptimizerNamed(std::string_view name, std::span<const OptimizerKind> kinds) {
  const auto found = std::ranges::find(kinds, name, &OptimizerKind::name);
  TACIT_CHECK(found != kinds.end(), "no optimiser that is known");
  return &*found;
}

uint32_t BeginAveragedRow(const OptimizerStep& step, const RowUpdate& update) {
  const size_t n = update.gradient.size();
  const std::span<float> row = update.row;
  const uint32_t last = CountOf(row.back());
  TACIT_CHECK(last < step.step, "a row is stepped once, in a step that StepDense began");
  if (step.average.on())
    MoveAverage(row.data(), n, static_cast<float>(step.average.Keep(last, step.step - 1)),
                row.data() + row.size() - 1 - n);
  return last;
}

void EndAveragedRow(const OptimizerStep& step, const RowUpdate& update) {
  const size_t n = update.gradient.size();
  const std::span<float> row = update.row;
  if (step.average.on())
    MoveAverage(row.data(), n, step.average_keep, row.data() + row.size() - 1 - n);
  row.back() = CountAsFloat(step.step);
}

void MoveAverage(const float* __restrict weights, size_t n, float keep, float* __restrict average) {
  if (keep == 0) {
    std::copy_n(weights, n, average);
    return;
  }
  for (size_t i = 0; i < n; ++i) average[i] = weights[i] + keep * (average[i] - weights[i]);
}

}  // namespace tacit::train
