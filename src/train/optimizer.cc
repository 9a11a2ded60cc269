#include "train/optimizer.h"

#include <cmath>

#include "base/check.h"

namespace tacit::train {
namespace {

void Sgd(const float* gradient, size_t n, float rate, float* parameters) {
  for (size_t i = 0; i < n; ++i) parameters[i] -= rate * gradient[i];
}

// One Adam step with bias correction folded into the rate and the epsilon:
// rate * m_hat / (sqrt(v_hat) + eps) = rate' * m / (sqrt(v) + eps').
struct AdamStep {
  float beta1, beta2, rate, epsilon;

  AdamStep(const OptimizerOptions& options, float base_rate, double t)
      : beta1(options.beta1), beta2(options.beta2) {
    const double correction1 = 1 - std::pow(double{options.beta1}, t);
    const double correction2 = std::sqrt(1 - std::pow(double{options.beta2}, t));
    rate = static_cast<float>(base_rate * correction2 / correction1);
    epsilon = static_cast<float>(options.epsilon * correction2);
  }

  void Apply(const float* gradient, size_t n, float* parameters, float* m, float* v) const {
    for (size_t i = 0; i < n; ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * gradient[i];
      v[i] = beta2 * v[i] + (1 - beta2) * gradient[i] * gradient[i];
      parameters[i] -= rate * m[i] / (std::sqrt(v[i]) + epsilon);
    }
  }
};

}  // namespace

size_t Optimizer::StateFloats(size_t n) const {
  return options_.kind == OptimizerOptions::Kind::kAdam ? 2 * n + 1 : 0;
}

void Optimizer::StepDense(std::span<const float> gradient, std::span<float> parameters,
                          std::span<float> state, WorkerPool& workers) const {
  const size_t n = parameters.size();
  TACIT_CHECK(gradient.size() == n && state.size() == StateFloats(n));
  constexpr size_t kGrain = 1024;
  if (options_.kind == OptimizerOptions::Kind::kSgd) {
    workers.Run(
        n,
        [&](size_t begin, size_t end, size_t) {
          Sgd(gradient.data() + begin, end - begin, options_.learning_rate,
              parameters.data() + begin);
        },
        kGrain);
    return;
  }
  float& t = state[2 * n];
  t += 1;
  const AdamStep step(options_, options_.learning_rate, t);
  workers.Run(
      n,
      [&](size_t begin, size_t end, size_t) {
        step.Apply(gradient.data() + begin, end - begin, parameters.data() + begin,
                   state.data() + begin, state.data() + n + begin);
      },
      kGrain);
}

void Optimizer::StepRow(std::span<const float> gradient, std::span<float> row) const {
  const size_t n = gradient.size();
  TACIT_CHECK(row.size() == n + StateFloats(n));
  if (options_.kind == OptimizerOptions::Kind::kSgd) {
    Sgd(gradient.data(), n, options_.row_learning_rate, row.data());
    return;
  }
  float& t = row[3 * n];
  t += 1;
  AdamStep(options_, options_.row_learning_rate, t)
      .Apply(gradient.data(), n, row.data(), row.data() + n, row.data() + 2 * n);
}

}  // namespace tacit::train
