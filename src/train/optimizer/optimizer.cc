#include "train/optimizer/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tacit::train {

Optimizer::Optimizer(const OptimizerOptions& options)
    : options_(options),
      average_(options.average_decay),
      beta1_(double{options.beta1}),
      beta2_(double{options.beta2}),
      dense_floats_(kind().dense_floats(options)),
      row_floats_(kind().row_floats(options)) {
  TACIT_CHECK(!kind().subtracts_noise || options.variance_floor > 0,
              "noise is subtracted from Adam's second moment, down to a floor");
}

size_t Optimizer::DenseStateFloats(size_t n) const {
  const size_t end = average_.on() ? average_.StateFloats(n) : size_t{kind().counts_steps};
  return dense_floats_(n) + size_t{kind().subtracts_noise} + end;
}

size_t Optimizer::RowStateFloats(size_t dim) const {
  const size_t end = average_.on() ? average_.StateFloats(dim) : size_t{lazy()};
  return row_floats_(dim) + end;
}

std::vector<float> Optimizer::MovedDenseState(std::span<const float> state, size_t before,
                                              std::span<const size_t> origin,
                                              std::span<const float> parameters) const {
  const size_t n = origin.size();
  TACIT_CHECK(state.size() == DenseStateFloats(before) && parameters.size() == n);
  std::vector<float> moved(DenseStateFloats(n));
  for (size_t block = 0; block < dense_floats_.per_number; ++block)
    for (size_t i = 0; i < n; ++i)
      if (origin[i] != kNew) moved[block * n + i] = state[block * before + origin[i]];
  // Numbers that are stored once are at the end of these blocks, and after the average.
  const size_t numbers = dense_floats_.per_number;
  const size_t once = dense_floats_(n) + size_t{kind().subtracts_noise} - numbers * n;
  std::copy_n(state.begin() + static_cast<ptrdiff_t>(numbers * before), once,
              moved.begin() + static_cast<ptrdiff_t>(numbers * n));
  if (average_.on()) {
    const std::span<const float> average = average_.Of(before, state);
    float* const out = moved.data() + moved.size() - 1 - n;
    for (size_t i = 0; i < n; ++i) out[i] = origin[i] == kNew ? parameters[i] : average[origin[i]];
  }
  if (average_.on() || kind().counts_steps) moved.back() = state.back();
  return moved;
}

void Optimizer::MoveRow(std::span<const float> was, size_t before, std::span<float> is,
                        size_t dim) const {
  TACIT_CHECK(was.size() == before + RowStateFloats(before) &&
              is.size() == dim + RowStateFloats(dim));
  const size_t kept = std::min(before, dim), blocks = 1 + row_floats_.per_number;
  for (size_t block = 0; block < blocks; ++block)
    std::copy_n(was.data() + block * before, kept, is.data() + block * dim);
  std::copy_n(was.data() + blocks * before, row_floats_.fixed, is.data() + blocks * dim);
  if (average_.on()) {
    float* const average = is.data() + is.size() - 1 - dim;
    std::copy_n(is.data(), dim, average);
    std::copy_n(was.data() + was.size() - 1 - before, kept, average);
  }
  if (average_.on() || lazy()) is.back() = was.back();
}

// Continues from the stored step count if the state has one.
void Optimizer::BeginStep(std::span<float> state) {
  const bool stored = kind().counts_steps || average_.on();
  step_ = 1 + (stored ? CountOf(state.back()) : step_);
  if (stored) state.back() = CountAsFloat(step_);
  power1_ = beta1_(step_);
  power2_ = beta2_(step_);
  average_keep_ = static_cast<float>(average_.on() ? average_.Keep(step_ - 1, step_) : 0);
}

OptimizerStep Optimizer::StepUnderWay() const {
  return {.options = options_,
          .average = average_,
          .beta1 = beta1_,
          .beta2 = beta2_,
          .step = step_,
          .power1 = power1_,
          .power2 = power2_,
          .average_keep = average_keep_,
          .lazy = lazy()};
}

void Optimizer::StepDense(std::span<const float> gradient, double noise_stddev,
                          std::span<float> parameters, std::span<float> state,
                          WorkerPool& workers) {
  constexpr size_t kGrain = 1024;
  const size_t n = parameters.size();
  TACIT_CHECK(gradient.size() == n && state.size() == DenseStateFloats(n));
  BeginStep(state);
  OptimizerStep step = StepUnderWay();
  if (kind().subtracts_noise) {
    TACIT_CHECK(noise_stddev > 0 && std::isfinite(noise_stddev), "there is no noise to subtract");
    float& stored = state[dense_floats_(n)];
    double average = options_.beta2 * double{stored};
    average += (1 - double{options_.beta2}) * noise_stddev * noise_stddev;
    stored = static_cast<float>(average);
    step.noise_variance = static_cast<float>(average / (1 - power2_));
  }
  workers.Run(
      n,
      [&](size_t begin, size_t end, size_t) {
        kind().step_dense(step, gradient.data() + begin, end - begin, parameters.data() + begin,
                          state.data() + begin, n);
        if (average_.on())
          MoveAverage(parameters.data() + begin, end - begin, average_keep_,
                      state.data() + state.size() - 1 - n + begin);
      },
      kGrain);
}

void Optimizer::StepRows(std::span<const RowUpdate> rows) const {
  for (const RowUpdate& update : rows)
    TACIT_CHECK(update.row.size() ==
                update.gradient.size() + RowStateFloats(update.gradient.size()));
  kind().step_rows(StepUnderWay(), rows);
}

std::string FingerprintText(const OptimizerOptions& options, bool of_rows) {
  const std::string moments =
      of_rows ? fmt::format(" moments={}", static_cast<int>(options.moments)) : "";
  return fmt::format("optimizer={} momentum={}{} subtract_noise={} average={}",
                     options.kind->stored_as, options.momentum > 0, moments,
                     options.kind->subtracts_noise, options.average_decay);
}

}  // namespace tacit::train
