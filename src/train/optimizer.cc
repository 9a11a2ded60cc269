#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tacit::train {
namespace {

using Kind = OptimizerOptions::Kind;

void Sgd(const float* __restrict gradient, size_t n, float rate, float* __restrict weights) {
  for (size_t i = 0; i < n; ++i) weights[i] -= rate * gradient[i];
}

void Momentum(const float* __restrict gradient, size_t n, float rate, float momentum,
              float* __restrict weights, float* __restrict u) {
  for (size_t i = 0; i < n; ++i) {
    u[i] = momentum * u[i] + gradient[i];
    weights[i] -= rate * u[i];
  }
}

void Adagrad(const float* __restrict gradient, size_t n, float rate, float epsilon,
             float* __restrict weights, float* __restrict s) {
  for (size_t i = 0; i < n; ++i) {
    s[i] += gradient[i] * gradient[i];
    weights[i] -= rate * gradient[i] / (std::sqrt(s[i]) + epsilon);
  }
}

void RowAdagrad(const float* __restrict gradient, size_t n, float rate, float epsilon,
                float* __restrict weights, float* __restrict s) {
  double squared = 0;
  for (size_t i = 0; i < n; ++i) squared += double{gradient[i]} * gradient[i];
  *s += static_cast<float>(squared / static_cast<double>(n));
  Sgd(gradient, n, rate / (std::sqrt(*s) + epsilon), weights);
}

// One Adam step: the moments of before count keep1 and keep2. Bias correction is folded into the
// rate and the epsilon: rate * m_hat / (sqrt(v_hat) + eps) = rate' * m / (sqrt(v) + eps').
struct AdamStep {
  float keep1, keep2, add1, add2, rate, epsilon;

  AdamStep(const OptimizerOptions& options, float base_rate, double power1, double power2)
      : keep1(options.beta1),
        keep2(options.beta2),
        add1(1 - options.beta1),
        add2(1 - options.beta2) {
    const double correction1 = 1 - power1, correction2 = std::sqrt(1 - power2);
    rate = static_cast<float>(base_rate * correction2 / correction1);
    epsilon = static_cast<float>(options.epsilon * correction2);
  }

  void Apply(const float* __restrict gradient, size_t n, float* __restrict weights,
             float* __restrict m, float* __restrict v) const {
    for (size_t i = 0; i < n; ++i) {
      m[i] = keep1 * m[i] + add1 * gradient[i];
      v[i] = keep2 * v[i] + add2 * gradient[i] * gradient[i];
      weights[i] -= rate * m[i] / (std::sqrt(v[i]) + epsilon);
    }
  }
};

// One step of DP-AdamBC: rate * m_hat / sqrt(max(v_hat - noise, floor)).
struct CorrectedAdamStep {
  float beta1, beta2, rate, per_correction2, noise, floor;

  CorrectedAdamStep(const OptimizerOptions& options, float base_rate, double power1, double power2,
                    float variance)
      : beta1(options.beta1),
        beta2(options.beta2),
        rate(static_cast<float>(base_rate / (1 - power1))),
        per_correction2(static_cast<float>(1 / (1 - power2))),
        noise(variance),
        floor(options.variance_floor) {}

  void Apply(const float* __restrict gradient, size_t n, float* __restrict weights,
             float* __restrict m, float* __restrict v) const {
    for (size_t i = 0; i < n; ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * gradient[i];
      v[i] = beta2 * v[i] + (1 - beta2) * gradient[i] * gradient[i];
      const float signal = v[i] * per_correction2 - noise;
      weights[i] -= rate * m[i] / std::sqrt(signal > floor ? signal : floor);
    }
  }
};

// average = weights + keep * (average - weights). The first average is the weights, whatever stood
// in its place.
void MoveAverage(const float* __restrict weights, size_t n, float keep, float* __restrict average) {
  if (keep == 0) {
    std::copy_n(weights, n, average);
    return;
  }
  for (size_t i = 0; i < n; ++i) average[i] = weights[i] + keep * (average[i] - weights[i]);
}

}  // namespace

Optimizer::Powers::Powers(double base) : base_(base), small_(64) {
  for (size_t k = 0; k < small_.size(); ++k) small_[k] = std::pow(base, k);
}

double Optimizer::Powers::operator()(uint32_t k) const {
  return k < small_.size() ? small_[k] : std::pow(base_, k);
}

Optimizer::Optimizer(const OptimizerOptions& options)
    : options_(options),
      average_(options.average_decay),
      beta1_(double{options.beta1}),
      beta2_(double{options.beta2}) {
  TACIT_CHECK(!options.subtract_noise || (adam() && options.variance_floor > 0),
              "noise is subtracted from Adam's second moment, down to a floor");
}

size_t Optimizer::DenseStateFloats(size_t n) const {
  const bool one = momentum() || options_.kind == Kind::kAdagrad;
  const size_t moments = adam() ? 2 * n : one ? n : 0;
  const size_t end = average_.on() ? average_.StateFloats(n) : static_cast<size_t>(adam());
  return moments + static_cast<size_t>(options_.subtract_noise) + end;
}

size_t Optimizer::RowStateFloats(size_t dim) const {
  const size_t moments = adam() ? 2 * dim : static_cast<size_t>(options_.kind == Kind::kAdagrad);
  const size_t end = average_.on() ? average_.StateFloats(dim) : static_cast<size_t>(lazy());
  return moments + static_cast<size_t>(adam() && !lazy()) + end;
}

// Where the step is stored, it is gone on from there.
void Optimizer::BeginStep(std::span<float> state) {
  const bool stored = adam() || average_.on();
  step_ = 1 + (stored ? CountOf(state.back()) : step_);
  if (stored) state.back() = CountAsFloat(step_);
  power1_ = beta1_(step_);
  power2_ = beta2_(step_);
  average_keep_ = static_cast<float>(average_.on() ? average_.Keep(step_ - 1, step_) : 0);
}

void Optimizer::StepDense(std::span<const float> gradient, double noise_stddev,
                          std::span<float> parameters, std::span<float> state,
                          WorkerPool& workers) {
  constexpr size_t kGrain = 1024;
  const size_t n = parameters.size();
  TACIT_CHECK(gradient.size() == n && state.size() == DenseStateFloats(n));
  BeginStep(state);
  float variance = 0;  // of the noise, on average, corrected like the second moment
  if (options_.subtract_noise) {
    TACIT_CHECK(noise_stddev > 0 && std::isfinite(noise_stddev), "there is no noise to subtract");
    double average = options_.beta2 * double{state[2 * n]};
    average += (1 - double{options_.beta2}) * noise_stddev * noise_stddev;
    state[2 * n] = static_cast<float>(average);
    variance = static_cast<float>(average / (1 - power2_));
  }
  workers.Run(
      n,
      [&](size_t begin, size_t end, size_t) {
        StepDensePart(gradient.data() + begin, end - begin, variance, parameters.data() + begin,
                      state.data() + begin, n);
        if (average_.on())
          MoveAverage(parameters.data() + begin, end - begin, average_keep_,
                      state.data() + state.size() - 1 - n + begin);
      },
      kGrain);
}

// `first` and, `n` floats further, the second moment of this part.
void Optimizer::StepDensePart(const float* gradient, size_t count, float variance, float* weights,
                              float* first, size_t n) const {
  const float rate = options_.learning_rate;
  if (options_.subtract_noise) {
    CorrectedAdamStep(options_, rate, power1_, power2_, variance)
        .Apply(gradient, count, weights, first, first + n);
  } else if (adam()) {
    AdamStep(options_, rate, power1_, power2_).Apply(gradient, count, weights, first, first + n);
  } else if (options_.kind == Kind::kAdagrad) {
    Adagrad(gradient, count, rate, options_.epsilon, weights, first);
  } else if (momentum()) {
    Momentum(gradient, count, rate, options_.momentum, weights, first);
  } else {
    Sgd(gradient, count, rate, weights);
  }
}

void Optimizer::StepRow(std::span<const float> gradient, std::span<float> row) const {
  const size_t n = gradient.size();
  TACIT_CHECK(row.size() == n + RowStateFloats(n));
  float* const weights = row.data();
  if (!lazy() && !average_.on()) {
    StepRowWeights(gradient, 0, weights);
    return;
  }
  const uint32_t last = CountOf(row.back());
  TACIT_CHECK(last < step_, "a row is stepped once, in a step that StepDense began");
  float* const average = weights + row.size() - 1 - n;
  // What the average has become while the row stood still, then with its new weights.
  if (average_.on())
    MoveAverage(weights, n, static_cast<float>(average_.Keep(last, step_ - 1)), average);
  StepRowWeights(gradient, last, weights);
  if (average_.on()) MoveAverage(weights, n, average_keep_, average);
  row.back() = CountAsFloat(step_);
}

void Optimizer::StepRowWeights(std::span<const float> gradient, uint32_t last, float* row) const {
  const size_t n = gradient.size();
  const float* const g = gradient.data();
  const float rate = options_.row_learning_rate;
  float* const state = row + n;
  if (lazy()) {
    AdamStep step(options_, rate, power1_, power2_);
    step.keep1 = static_cast<float>(beta1_(step_ - last));
    step.keep2 = static_cast<float>(beta2_(step_ - last));
    step.Apply(g, n, row, state, state + n);
  } else if (adam()) {
    float& stored = state[2 * n];
    const uint32_t count = CountOf(stored) + 1;
    stored = CountAsFloat(count);
    AdamStep(options_, rate, beta1_(count), beta2_(count)).Apply(g, n, row, state, state + n);
  } else if (options_.kind == Kind::kAdagrad) {
    RowAdagrad(g, n, rate, options_.epsilon, row, state);
  } else {
    Sgd(g, n, rate, row);
  }
}

}  // namespace tacit::train
