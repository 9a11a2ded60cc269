#include "model/transitions/posterior.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "base/check.h"

namespace tacit::model::transitions {
namespace {

// The rows: log(mean / s). Below, noise hides y and the mean stays; above, it hides nothing.
constexpr double kRowFirst = -12, kRowStep = 0.125;
constexpr size_t kRows = 161;
// The columns: y / s. Beyond the last, the prior is locally a power of w.
constexpr double kColumnFirst = -6, kColumnStep = 0.25;
constexpr size_t kColumns = 185;
// The points of the integral: log w, at steps narrower than the accuracy to which a weight is
// known, 1 / w at the largest. A weight below the first is as good as 0.
constexpr double kFirst = -16, kStep = 1.0 / 64;
constexpr size_t kPoints = 1313;

double Below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

}  // namespace

Posterior::Posterior(double log_deviation)
    : log_deviation_(log_deviation), table_(kRows * kColumns) {
  TACIT_CHECK(log_deviation > 0);
  std::vector<double> w(kPoints), prior(kPoints), likelihood(kPoints * kColumns);
  for (size_t i = 0; i < kPoints; ++i) w[i] = std::exp(kFirst + kStep * static_cast<double>(i));
  std::vector<double> at_zero(kColumns);
  for (size_t c = 0; c < kColumns; ++c) {
    const double z = kColumnFirst + kColumnStep * static_cast<double>(c);
    // exp(-(z - w)^2 / 2) up to a factor that keeps it from vanishing at every w.
    const double scale = std::min(z, 0.0);
    at_zero[c] = std::exp((scale * scale - z * z) / 2);
    for (size_t i = 0; i < kPoints; ++i)
      likelihood[c * kPoints + i] = std::exp((scale * scale - (z - w[i]) * (z - w[i])) / 2);
  }
  for (size_t r = 0; r < kRows; ++r) {
    const double middle =
        kRowFirst + kRowStep * static_cast<double>(r) - log_deviation * log_deviation / 2;
    for (size_t i = 0; i < kPoints; ++i) {
      const double t = (kFirst + kStep * static_cast<double>(i) - middle) / log_deviation;
      prior[i] = std::exp(-t * t / 2) * kStep / (log_deviation * std::sqrt(2 * std::numbers::pi));
    }
    const double below = Below((kFirst - middle) / log_deviation);
    for (size_t c = 0; c < kColumns; ++c) {
      const double* seen = &likelihood[c * kPoints];
      double mass = below * at_zero[c], moment = 0;
      for (size_t i = 0; i < kPoints; ++i) {
        const double share = prior[i] * seen[i];
        mass += share;
        moment += share * w[i];
      }
      table_[r * kColumns + c] = static_cast<float>(std::log(moment / mass));
    }
  }
}

// Interpolates the mean between entries by its logarithm: from noise to signal it grows like an
// exponential.
double Posterior::Table(double log_mean, double z) const {
  const double row = std::clamp((log_mean - kRowFirst) / kRowStep, 0.0, kRows - 1.000001);
  const double column = std::clamp((z - kColumnFirst) / kColumnStep, 0.0, kColumns - 1.000001);
  const auto r = static_cast<size_t>(row), c = static_cast<size_t>(column);
  const double down = row - static_cast<double>(r), right = column - static_cast<double>(c);
  const float* at = &table_[r * kColumns + c];
  return std::exp((1 - down) * ((1 - right) * at[0] + right * at[1]) +
                  down * ((1 - right) * at[kColumns] + right * at[kColumns + 1]));
}

double Posterior::Mean(double mean, double y, double s) const {
  if (s == 0) return std::max(y, 0.0);
  const double log_mean = std::log(mean / s), z = y / s;
  const double middle = log_mean - log_deviation_ * log_deviation_ / 2;
  const double last = kColumnFirst + kColumnStep * (kColumns - 1);
  // Near a large z the prior's density of w is w^-slope, whose logarithm is nearly a straight line:
  // completing the square moves the mean by its derivative.
  if (z >= last) {
    const double slope = 1 + (std::log(z) - middle) / (log_deviation_ * log_deviation_);
    return s * (z - slope / z);
  }
  // This far below the noise the result is proportional to the mean.
  if (log_mean < kRowFirst) return mean * Table(kRowFirst, z) / std::exp(kRowFirst);
  return s * Table(log_mean, z);
}

}  // namespace tacit::model::transitions
