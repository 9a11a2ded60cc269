#pragma once

#include "base/device.h"

// An optimiser's rule for one number, for the CPU's loops and for kernels: equal bits on both.
namespace tacit::train {

#if defined(__CUDA_ARCH__)
TACIT_DEVICE inline float RootOf(float x) { return __fsqrt_rn(x); }
TACIT_DEVICE inline double RootOf(double x) { return __dsqrt_rn(x); }
#else
TACIT_DEVICE inline float RootOf(float x) { return __builtin_sqrtf(x); }
TACIT_DEVICE inline double RootOf(double x) { return __builtin_sqrt(x); }
#endif

TACIT_DEVICE inline void SgdNumber(float gradient, float rate, float& weight) {
  weight -= rate * gradient;
}

TACIT_DEVICE inline void MomentumNumber(float gradient, float rate, float momentum, float& weight,
                                        float& u) {
  u = momentum * u + gradient;
  weight -= rate * u;
}

TACIT_DEVICE inline void AdagradNumber(float gradient, float rate, float epsilon, float& weight,
                                       float& s) {
  s += gradient * gradient;
  weight -= rate * gradient / (RootOf(s) + epsilon);
}

// One Adam step; keep1 and keep2 weigh the old moments. Bias correction is folded into the rate and
// the epsilon: rate * m_hat / (sqrt(v_hat) + eps) = rate' * m / (sqrt(v) + eps').
struct AdamNumbers {
  float keep1, keep2, add1, add2, rate, epsilon;

  TACIT_DEVICE void Step(float gradient, float& weight, float& m, float& v) const {
    m = keep1 * m + add1 * gradient;
    v = keep2 * v + add2 * gradient * gradient;
    weight -= rate * m / (RootOf(v) + epsilon);
  }
};

// `power1` and `power2` are beta1 and beta2 to the number of steps.
TACIT_DEVICE inline AdamNumbers MakeAdamNumbers(float beta1, float beta2, float rate, float epsilon,
                                                double power1, double power2) {
  const double correction1 = 1 - power1, correction2 = RootOf(1 - power2);
  return {.keep1 = beta1,
          .keep2 = beta2,
          .add1 = 1 - beta1,
          .add2 = 1 - beta2,
          .rate = static_cast<float>(rate * correction2 / correction1),
          .epsilon = static_cast<float>(epsilon * correction2)};
}

// One step of DP-AdamBC: rate * m_hat / sqrt(max(v_hat - noise, floor)).
struct CorrectedAdamNumbers {
  float beta1, beta2, rate, per_correction2, noise, floor;

  TACIT_DEVICE void Step(float gradient, float& weight, float& m, float& v) const {
    m = beta1 * m + (1 - beta1) * gradient;
    v = beta2 * v + (1 - beta2) * gradient * gradient;
    const float signal = v * per_correction2 - noise;
    weight -= rate * m / RootOf(signal > floor ? signal : floor);
  }
};

}  // namespace tacit::train
