#pragma once

#include <vector>

namespace tacit::model::transitions {

// The mean of a weight w >= 0 after it was measured: w is lognormal with a given mean and standard
// deviation of its logarithm, and y = w + N(0, s^2) was seen. In units of s it depends on two
// numbers, mean / s and y / s: a table of both, made once, interpolated. Thread-safe.
class Posterior {
 public:
  explicit Posterior(double log_deviation);

  // Accurate to 1 % of the integral (or 1e-4 s, if that is more). For `s` 0: y itself, or 0 if that
  // is more. REQUIRES mean >= 0.
  double Mean(double mean, double y, double s) const;

 private:
  double Table(double log_mean, double z) const;

  const double log_deviation_;
  std::vector<float> table_;  // log(E w / s), rows by log(mean / s), columns by y / s
};

}  // namespace tacit::model::transitions
