#include "model/linear/update.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tacit::model::linear {
namespace {

// Keeps a well known value from deciding a column's variance alone.
constexpr double kVarianceFloor = 0.1;

double Squared(double x) { return x * x; }

}  // namespace

std::vector<double> ColumnScales(const Columns& columns, const UpdateOptions& options) {
  std::vector<double> scales;
  double squares = 0;
  for (const RowSpace::Table& table : columns.space().tables()) {
    scales.push_back(std::pow(static_cast<double>(table.rows), options.scale_power));
    squares += Squared(scales.back());
  }
  const double factor = std::sqrt(static_cast<double>(scales.size()) / squares);
  for (double& scale : scales) scale *= factor;
  return scales;
}

double ContributionMost(size_t columns, const UpdateOptions& options) {
  const double values = Squared(options.count_share) + Squared(options.residual_most);
  const double moves = Squared(options.move_share);
  const auto count = static_cast<double>(columns);
  return std::sqrt(values * count + moves * Squared(options.residual_most) * count + moves);
}

double MeanResidual(const ValueSums& sums, const UpdateOptions& options) {
  const double events = std::accumulate(sums.count.begin(), sums.count.end(), 0.0);
  if (!(events > 0)) return 0;
  const double residual = std::accumulate(sums.residual.begin(), sums.residual.end(), 0.0);
  // The logit's shift has the variance 1 before, and that of its noise.
  const double noise = static_cast<double>(sums.count.size()) * sums.noise_variance /
                       Squared(events * options.curvature);
  return residual / events / (1 + noise);
}

double BiasMove(double mean_residual, const UpdateOptions& options) {
  return mean_residual / (2 * options.curvature);
}

Observed Observe(const ValueSums& sums, double mean_residual, const UpdateOptions& options) {
  TACIT_CHECK(sums.residual.size() == sums.count.size());
  const size_t n = sums.count.size();
  Observed observed{std::vector<double>(n), std::vector<double>(n)};
  const double shift = mean_residual / options.curvature;
  for (size_t i = 0; i < n; ++i) {
    const double information = sums.count[i] * options.curvature;
    observed.effect[i] = sums.residual[i] / information - shift;
    observed.variance[i] = (sums.noise_variance + information) / Squared(information);
  }
  return observed;
}

void Prior::Add(std::span<const float> weights, const Observed& observed) {
  TACIT_CHECK(weights.size() == observed.effect.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const double trust = 1 / Squared(observed.variance[i] + kVarianceFloor);
    sum += trust * (Squared(weights[i] + observed.effect[i]) - observed.variance[i]);
    weight += trust;
  }
}

double Prior::Variance(const UpdateOptions& options) const {
  const double variance = weight > 0 ? sum / weight : options.prior;
  return std::clamp(variance, options.prior_least, options.prior_most);
}

void MoveWeights(const Observed& observed, double prior_variance, double rate,
                 const UpdateOptions& options, const Weights& weights) {
  const size_t n = observed.effect.size();
  TACIT_CHECK(weights.weight.size() == n && weights.variance.size() == n &&
              weights.move.size() == n && weights.age.size() == n);
  for (size_t i = 0; i < n; ++i) {
    const double drifted = weights.variance[i] + weights.age[i] * options.drift * prior_variance;
    const double variance =
        weights.age[i] == 0 ? prior_variance : std::min(drifted, prior_variance);
    const double gain = variance / (variance + observed.variance[i]);
    const double move = rate * gain * observed.effect[i];
    weights.weight[i] = static_cast<float>(weights.weight[i] + move);
    weights.variance[i] = static_cast<float>((1 - gain) * variance);
    weights.move[i] = static_cast<float>(move);
  }
}

double NextRate(double rate, const MoveSums& sums, const UpdateOptions& options) {
  if (sums.square <= 0 || sums.square < 2 * sums.square_deviation) return rate;
  const double factor = std::clamp(1 + sums.along / (options.curvature * sums.square),
                                   options.factor_least, options.factor_most);
  return std::min(options.rate_most, rate * std::sqrt(factor));
}

}  // namespace tacit::model::linear
