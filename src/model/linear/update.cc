#include "model/linear/update.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tacit::model::linear {
namespace {

// Keeps a well known value from deciding a column's variance alone.
constexpr double kVarianceFloor = 0.1;
// Observations of a larger variance tell nothing of a column's: that they are some percent wrong
// would be more than all effects, and rare values are many.
constexpr double kVarianceMost = 1;

// A period of fewer events than this many deviations of their count's noise tells nothing of them
// all.
constexpr double kSureDeviations = 4;

// Bounds of what bins are trusted.
constexpr double kBinVarianceLeast = 1e-6, kNoPrecision = 1e-6;

double Squared(double x) { return x * x; }
double Logit(double p) { return std::log(p / (1 - p)); }

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
  return std::sqrt(values * count + moves * Squared(options.residual_most) * count + moves +
                   Squared(options.click_share));
}

double ResidualFactor(double p, const UpdateOptions& options) {
  return std::min(1.0, options.residual_most / std::max(p, 1 - p));
}

Curve CurveAt(double rate, const UpdateOptions& options) {
  const double factor = ResidualFactor(rate, options), outcome = rate * (1 - rate);
  return {.slope = options.slope_share * outcome * factor,
          .variance = options.variance_share * outcome * factor * factor};
}

double MeanResidual(const ValueSums& sums, double slope) {
  const double events = std::accumulate(sums.count.begin(), sums.count.end(), 0.0);
  const double deviation =
      std::sqrt(static_cast<double>(sums.count.size()) * sums.count_noise_variance);
  if (!(events > kSureDeviations * deviation)) return 0;
  const double residual = std::accumulate(sums.residual.begin(), sums.residual.end(), 0.0);
  // The logit's shift has the variance 1 before, and that of its noise.
  const double noise =
      static_cast<double>(sums.count.size()) * sums.noise_variance / Squared(events * slope);
  return residual / events / (1 + noise);
}

double ClickRate(double clicks, double events, double deviation, const UpdateOptions& options) {
  const double rate = (std::max(clicks, 0.0) + deviation / 2) / (std::max(events, 0.0) + deviation);
  return std::clamp(std::isnan(rate) ? 0.5 : rate, options.rate_least, 1 - options.rate_least);
}

double MeanPrediction(double rate, double mean_residual, const UpdateOptions& options) {
  // rate - p = residual / factor(p) has one solution, since no residual is longer than rho.
  double low = options.rate_least, high = 1 - options.rate_least;
  for (int i = 0; i < 50; ++i) {
    const double p = (low + high) / 2;
    (p + mean_residual / ResidualFactor(p, options) < rate ? low : high) = p;
  }
  return (low + high) / 2;
}

double BiasMove(double rate, double mean_residual, const UpdateOptions& options) {
  return Logit(rate) - Logit(MeanPrediction(rate, mean_residual, options));
}

double FirstBias(const NoisedRate& noised) {
  const double events = std::max(noised.events, noised.events_deviation);
  const double information = events * noised.rate * (1 - noised.rate);
  // The logit has the variance 1 before, and that of its noise.
  const double noise =
      (Squared(noised.clicks_deviation) + Squared(noised.rate * noised.events_deviation)) /
      Squared(information);
  return std::isfinite(noise) ? Logit(noised.rate) / (1 + noise) : 0;
}

Observed Observe(const ValueSums& sums, double mean_residual, const Curve& curve) {
  TACIT_CHECK(sums.residual.size() == sums.count.size());
  const size_t n = sums.count.size();
  Observed observed{std::vector<double>(n), std::vector<double>(n)};
  const double shift = mean_residual / curve.slope;
  const double noise = sums.noise_variance + Squared(mean_residual) * sums.count_noise_variance;
  for (size_t i = 0; i < n; ++i) {
    const double information = sums.count[i] * curve.slope;
    observed.effect[i] = sums.residual[i] / information - shift;
    observed.variance[i] = (noise + sums.count[i] * curve.variance) / Squared(information);
  }
  return observed;
}

void Prior::Add(std::span<const float> weights, const Observed& observed) {
  TACIT_CHECK(weights.size() == observed.effect.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    if (observed.variance[i] > kVarianceMost) continue;
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
              weights.move.size() == n && weights.error.size() == n && weights.age.size() == n);
  const double surprise = Surprise(observed, weights.error, weights.age);
  for (size_t i = 0; i < n; ++i) {
    const double drifted = weights.variance[i] + weights.age[i] * options.drift * prior_variance;
    const double variance =
        weights.age[i] == 0 ? prior_variance : std::min(drifted, prior_variance);
    const double gain = variance / (variance + observed.variance[i]);
    const double move = rate * gain * observed.effect[i];
    weights.weight[i] = static_cast<float>(weights.weight[i] + move);
    weights.variance[i] = static_cast<float>((1 - gain) * variance);
    weights.move[i] = static_cast<float>(move);
    const double error = weights.age[i] == 0 ? prior_variance : weights.error[i] + surprise;
    weights.error[i] = static_cast<float>(Squared(1 - rate * gain) * error +
                                          Squared(rate * gain) * observed.variance[i]);
  }
}

// The minimum's equations have three diagonals: they are solved by elimination from both ends.
void SmoothBins(std::span<const float> variance, double prior_variance,
                const UpdateOptions& options, std::span<float> weight) {
  const size_t n = weight.size();
  TACIT_CHECK(variance.size() == n);
  const double link = 1 / (options.bin_step * prior_variance);
  std::vector<double> diagonal(n), right(n);
  for (size_t b = 0; b < n; ++b) {
    const double precision =
        variance[b] > 0 ? 1 / std::max<double>(variance[b], kBinVarianceLeast) : kNoPrecision;
    const double links = (b > 0 ? link : 0) + (b + 1 < n ? link : 0);
    diagonal[b] = precision + links;
    right[b] = precision * weight[b];
  }
  for (size_t b = 1; b < n; ++b) {
    const double share = link / diagonal[b - 1];
    diagonal[b] -= share * link;
    right[b] += share * right[b - 1];
  }
  double next = 0;
  for (size_t b = n; b-- > 0;) {
    next = (right[b] + (b + 1 < n ? link * next : 0)) / diagonal[b];
    if (variance[b] > 0) weight[b] = static_cast<float>(next);
  }
}

double Surprise(const Observed& observed, std::span<const float> error,
                std::span<const uint32_t> age) {
  double sum = 0, trust = 0;
  for (size_t i = 0; i < error.size(); ++i) {
    if (age[i] == 0) continue;
    const double expected = error[i] + observed.variance[i], weight = 1 / Squared(expected);
    // Cut, since a few clicks of a rare value are no drift.
    const double square = std::min(Squared(observed.effect[i]), 9 * expected);
    sum += weight * (square - expected);
    trust += weight;
  }
  // Each square is chi squared of 1 degree: its deviation is sqrt(2) of what is expected.
  return trust > 0 ? std::max(0.0, (sum - 3 * std::sqrt(2 * trust)) / trust) : 0;
}

double DeviationOf(float weight, float error, const UpdateOptions& options) {
  return std::sqrt(static_cast<double>(error) + Squared(options.short_share * weight));
}

double ExplainedVariance(const Observed& observed, std::span<const double> count, double events,
                         double prior_variance) {
  TACIT_CHECK(count.size() == observed.effect.size());
  double sum = 0;
  for (size_t i = 0; i < count.size(); ++i) {
    const double gain = prior_variance / (prior_variance + observed.variance[i]);
    sum += count[i] * Squared(gain * observed.effect[i]);
  }
  return events > 0 ? sum / events : 0;
}

double FirstRate(double explained, const UpdateOptions& options) {
  return options.rate * std::min(1.0, options.explained_most / std::max(explained, 1e-9));
}

double NextRate(double rate, const MoveSums& sums, double slope, const UpdateOptions& options) {
  if (sums.square <= 0 || sums.square < 2 * sums.square_deviation) return rate;
  const double factor =
      std::clamp(1 + sums.along / (slope * sums.square), options.factor_least, options.factor_most);
  return std::min(options.rate_most, rate * std::sqrt(factor));
}

}  // namespace tacit::model::linear
