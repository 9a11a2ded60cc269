#include "privacy/pld/sampled_gaussian.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "privacy/infinity.h"
#include "privacy/pld/normal.h"

namespace tacit::privacy::pld {
namespace {

// Standard deviations beyond which a normal law adds nothing to a sum of doubles.
constexpr double kReach = 38;

// At most `tail` of a normal law lies beyond this many standard deviations.
double TailReach(double tail) {
  TACIT_CHECK(tail > 0);
  return std::min(std::sqrt(2 * std::log(1 / std::min(tail, 0.5))), kReach);
}

// The point above which (1 - q) N(0, s^2) + q N(1, s^2) has at most `tail`.
double MixtureReach(double sigma, double rate, double tail) {
  const auto above = [&](double x) {
    return (1 - rate) * NormalMass(x / sigma, kReach) + rate * NormalMass((x - 1) / sigma, kReach) >
           tail;
  };
  double low = 0, high = 1 + kReach * sigma;
  while (high - low > 1e-3 * sigma) {
    const double middle = (low + high) / 2;
    (above(middle) ? low : high) = middle;
  }
  return high;
}

// Panel width on which the integrands below, with factors like the density and e^(x / s^2), are as
// smooth as polynomials. Behind `from` standard deviations the density falls by e^(-from x / s), at
// most e^-3 a panel.
double Panel(double sigma, double from) {
  const double panel = std::min(0.4 * sigma, sigma * sigma);
  return from > 0 ? std::min(panel, 3 * sigma / from) : panel;
}

// The begin of a tail over (a, b], in standard deviations; 0 where losses end at `high`.
double TailFrom(double a, double b, double high) {
  return high == kInfinity ? std::max({0.0, a, -b}) : 0;
}

// A rough sketch of a law over normal noise at 0 and 1: `loss(x)` with the mass of `density(x)`.
template <class Loss, class Density>
std::vector<PilotPoint> PilotOver(double low, double high, double step, Loss loss,
                                  Density density) {
  std::vector<PilotPoint> points;
  double sum = 0;
  for (double x = low; x <= high; x += step) {
    points.push_back({loss(x), density(x)});
    sum += points.back().mass;
  }
  for (PilotPoint& point : points) point.mass /= sum;
  return points;
}

}  // namespace

// ---- Gaussian

IntervalMass GaussianLaw::Over(double low, double high, double reference) const {
  // z = (L - mu^2/2) / mu is standard normal.
  const double a = std::max((low - mu_ * mu_ / 2) / mu_, -kReach);
  const double b = std::min((high - mu_ * mu_ / 2) / mu_, kReach);
  if (!(a < b)) return {};
  IntervalMass sum;
  sum.mass = NormalMass(a, b);
  const double panel = std::min(1 / mu_, Panel(1, TailFrom(a, b, high)));
  sum.gain = Integrate(a, b, panel, [&](double z) {
    return NormalDensity(z) * -SmallExpm1(reference - mu_ * (z + mu_ / 2));
  });
  return sum;
}

double GaussianLaw::Lowest(double tail) const { return mu_ * (mu_ / 2 - TailReach(tail)); }
double GaussianLaw::Highest(double tail) const { return mu_ * (mu_ / 2 + TailReach(tail)); }

std::vector<PilotPoint> GaussianLaw::Pilot() const {
  return PilotOver(
      -10, 10 + std::min(mu_, 30.0), 0.2, [&](double z) { return mu_ * (z + mu_ / 2); },
      NormalDensity);
}

// ---- Sampled, add or remove

SampledGaussianLaw::SampledGaussianLaw(double sigma, double rate, Direction direction)
    : sigma_(sigma), rate_(rate), add_(direction == Direction::kAdd) {
  TACIT_CHECK(direction != Direction::kReplace && rate > 0 && rate < 1);
}

double SampledGaussianLaw::LogRatio(double x) const {
  return std::log1p(rate_ * std::expm1((2 * x - 1) / (2 * sigma_ * sigma_)));
}

double SampledGaussianLaw::Inverse(double ratio) const {
  const double above = std::expm1(ratio) + rate_;  // q e^y
  if (!(above > 0)) return -kInfinity;
  if (ratio > 700) return kInfinity;
  return 0.5 + sigma_ * sigma_ * std::log(above / rate_);
}

// The integral over (a, b] of density(0, x) (w(x) - e^reference).
double SampledGaussianLaw::Gain(double a, double b, double reference, double panel) const {
  const double variance = sigma_ * sigma_;
  const double zero = Inverse(reference);
  if (zero == -kInfinity) {
    const double below = -rate_ - std::expm1(reference);
    return Integrate(a, b, panel, [&](double x) {
      const double density = NormalDensity(x / sigma_) / sigma_;
      return density * (rate_ * std::exp((2 * x - 1) / (2 * variance)) + below);
    });
  }
  // With little noise the density is 0 in doubles, and its factor infinite: they are one number.
  return rate_ / sigma_ * Integrate(a, b, panel, [&](double x) {
           const double density = NormalDensityTimes(x / sigma_, (2 * zero - 1) / (2 * variance));
           return density * SmallExpm1((x - zero) / variance);
         });
}

IntervalMass SampledGaussianLaw::Over(double low, double high, double reference) const {
  const double reach = kReach * sigma_;
  const double a = std::max(Inverse(add_ ? -high : low), -reach);
  const double b = std::min(Inverse(add_ ? -low : high), 1 + reach);
  if (!(a < b)) return {};
  const double at_zero = NormalMass(a / sigma_, b / sigma_);
  const double panel = Panel(sigma_, TailFrom(a / sigma_, b / sigma_, high));
  IntervalMass sum;
  if (add_) {
    // dP = density(0), 1 - e^reference w.
    sum.mass = at_zero;
    sum.gain = -std::exp(reference) * Gain(a, b, -reference, panel);
  } else {
    // dP = density(0) w, (1 - e^reference / w).
    sum.mass = (1 - rate_) * at_zero + rate_ * NormalMass((a - 1) / sigma_, (b - 1) / sigma_);
    sum.gain = Gain(a, b, reference, panel);
  }
  return sum;
}

double SampledGaussianLaw::Lowest(double tail) const {
  return add_ ? -LogRatio(sigma_ * TailReach(tail)) : std::log1p(-rate_);
}

double SampledGaussianLaw::Highest(double tail) const {
  return add_ ? -std::log1p(-rate_) : LogRatio(MixtureReach(sigma_, rate_, tail));
}

std::vector<PilotPoint> SampledGaussianLaw::Pilot() const {
  const double step = std::min(sigma_ / 6, sigma_ * sigma_ / 2);
  return PilotOver(
      -8 * sigma_, 1 + 11 * sigma_, step,
      [&](double x) { return add_ ? -LogRatio(x) : LogRatio(x); },
      [&](double x) {
        const double at_zero = NormalDensity(x / sigma_);
        return add_ ? at_zero : at_zero * (1 - rate_) + rate_ * NormalDensity((x - 1) / sigma_);
      });
}

double SampledGaussianLaw::Edge() const { return -std::log1p(-rate_); }

// ---- Sampled, replace one

ReplacedGaussianLaw::ReplacedGaussianLaw(double sigma, double rate) : sigma_(sigma), rate_(rate) {
  TACIT_CHECK(rate > 0 && rate < 1);
}

double ReplacedGaussianLaw::Loss(double x) const {
  const double variance = sigma_ * sigma_;
  return std::log1p(rate_ * std::expm1((2 * x - 1) / (2 * variance))) -
         std::log1p(rate_ * std::expm1((-2 * x - 1) / (2 * variance)));
}

// With s = e^(x / s^2), c = q e^(-1 / (2 s^2)): c s^2 + (1 - q)(1 - e^l) s - c e^l = 0, the
// positive root; the law is odd, so l >= 0 is enough.
double ReplacedGaussianLaw::Inverse(double loss) const {
  if (loss < 0) return -Inverse(-loss);
  if (loss > 700) return kInfinity;
  const double variance = sigma_ * sigma_;
  // From here on 1 and c^2 e^l are nothing beside (1 - q) e^l, whose square is no number soon.
  if (loss > 300) return variance * (std::log((1 - rate_) / rate_) + loss) + 0.5;
  const double c = rate_ * std::exp(-1 / (2 * variance));
  const double half = (1 - rate_) * std::expm1(loss) / 2;
  const double root = half + std::sqrt(half * half + c * c * std::exp(loss));
  // s - 1 = (root - c) / c, written so that small losses keep their digits.
  const double excess = half + (half * half + c * c * std::expm1(loss)) /
                                   (c + std::sqrt(half * half + c * c * std::exp(loss)));
  const double log_s = root > 2 * c ? std::log(root / c) : std::log1p(excess / c);
  return variance * log_s;
}

// The integral over (a, b] of dP (1 - e^(reference - L)) = density(0) (numerator - e^r
// denominator).
double ReplacedGaussianLaw::Gain(double a, double b, double reference, double panel) const {
  const double variance = sigma_ * sigma_;
  const double zero = Inverse(reference);
  const double c = rate_ * std::exp(-1 / (2 * variance));
  return c / sigma_ * Integrate(a, b, panel, [&](double x) {
           const double y = (x - zero) / variance, z = x / sigma_;
           return NormalDensityTimes(z, zero / variance) * SmallExpm1(y) -
                  NormalDensityTimes(z, reference - zero / variance) * SmallExpm1(-y);
         });
}

IntervalMass ReplacedGaussianLaw::Over(double low, double high, double reference) const {
  const double reach = kReach * sigma_;
  const double a = std::max(Inverse(low), -reach);
  const double b = std::min(Inverse(high), 1 + reach);
  if (!(a < b)) return {};
  IntervalMass sum;
  sum.mass = (1 - rate_) * NormalMass(a / sigma_, b / sigma_) +
             rate_ * NormalMass((a - 1) / sigma_, (b - 1) / sigma_);
  sum.gain = Gain(a, b, reference, Panel(sigma_, TailFrom(a / sigma_, b / sigma_, high)));
  return sum;
}

double ReplacedGaussianLaw::Lowest(double tail) const { return Loss(-sigma_ * TailReach(tail)); }
double ReplacedGaussianLaw::Highest(double tail) const {
  return Loss(MixtureReach(sigma_, rate_, tail));
}

std::vector<PilotPoint> ReplacedGaussianLaw::Pilot() const {
  const double step = std::min(sigma_ / 6, sigma_ * sigma_ / 2);
  return PilotOver(
      -10 * sigma_, 1 + 11 * sigma_, step, [&](double x) { return Loss(x); },
      [&](double x) {
        return (1 - rate_) * NormalDensity(x / sigma_) + rate_ * NormalDensity((x - 1) / sigma_);
      });
}

}  // namespace tacit::privacy::pld
