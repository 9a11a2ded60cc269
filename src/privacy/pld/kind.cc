#include "privacy/pld/kind.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace tacit::privacy::pld {
namespace {

constexpr double kLowestLogTilt = -9, kHighestLogTilt = 30;

// log of c^c / (1 + c)^(1 + c), the greatest value of (1 - e^-l) e^(-c l).
double LogKernel(double tilt) { return -std::log1p(tilt) - tilt * std::log1p(1 / tilt); }

// The minimum of a quasiconvex function of the tilt, by golden section on its logarithm.
template <class F>
double Minimise(F f) {
  constexpr double kGolden = 0.6180339887498949;
  double low = kLowestLogTilt, high = kHighestLogTilt;
  double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
  double at_a = f(std::exp(a)), at_b = f(std::exp(b));
  while (high - low > 0.03) {
    if (at_a < at_b) {
      high = std::exchange(b, a);
      at_b = at_a;
      a = high - kGolden * (high - low);
      at_a = f(std::exp(a));
    } else {
      low = std::exchange(a, b);
      at_a = at_b;
      b = low + kGolden * (high - low);
      at_b = f(std::exp(b));
    }
  }
  return std::exp((low + high) / 2);
}

// log of c (c + 1) sqrt(2 pi V): how far the integral is below e^(Lambda - c epsilon) if its
// integrand is taken as a Gaussian at the saddle.
double LogWidth(const Saddle& saddle) {
  const double c = saddle.tilt, more = c + 1;
  const double curvature = saddle.cumulants.variance + 1 / (c * c) + 1 / (more * more);
  return std::log(c * more) + std::log(2 * std::numbers::pi * curvature) / 2;
}

}  // namespace

Kind::Kind(const Event& of, Direction direction, const LawSource& source)
    : event(of), law(MakeLossLaw(of, direction, source)), pilot(law->Pilot()) {}

double TailFor(std::span<const Counted> events, double log_delta) {
  double all = 0;
  for (const Counted& counted : events) all += counted.count;
  return 2e-5 * std::exp(std::max(log_delta, -600.0)) / all;
}

void Cap(std::span<Counted> events, double log_delta) {
  const double tail = TailFor(events, log_delta);
  for (Counted& counted : events) counted.cap = counted.kind->law->Highest(tail);
}

Cumulants CumulantsAt(const Counted& one, double tilt) {
  double greatest = -std::numeric_limits<double>::infinity(), least = -greatest;
  for (const PilotPoint& point : one.kind->pilot) {
    if (point.loss > one.cap) continue;
    greatest = std::max(greatest, point.loss);
    least = std::min(least, point.loss);
  }
  // Small exponents use e^x - 1, so that 1e9 of them still add up.
  const bool small = tilt * std::max(greatest, -least) < 1;
  const double shift = small ? 0 : tilt * greatest;
  double sum = 0, excess = 0, first = 0, second = 0;
  for (const PilotPoint& point : one.kind->pilot) {
    if (point.loss > one.cap) continue;
    const double more = small ? point.mass * std::expm1(tilt * point.loss) : 0;
    const double weight =
        small ? point.mass + more : point.mass * std::exp(tilt * point.loss - shift);
    excess += more;
    sum += weight;
    first += weight * point.loss;
    second += weight * point.loss * point.loss;
  }
  const double mean = first / sum;
  const double log_moment = small ? std::log1p(excess) : std::log(sum) + shift;
  return {log_moment, mean, std::max(0.0, second / sum - mean * mean)};
}

Cumulants CumulantsAt(std::span<const Counted> events, double tilt) {
  Cumulants sum;
  for (const Counted& counted : events) {
    const Cumulants one = CumulantsAt(counted, tilt);
    sum.log_moment += counted.count * one.log_moment;
    sum.mean += counted.count * one.mean;
    sum.variance += counted.count * one.variance;
  }
  return sum;
}

double Accuracy(double epsilon) { return 2.5e-4 * std::max(epsilon, 0.0) + 1e-7; }
double SteepestAt(double epsilon) { return -std::log(kLeastDelta) / Accuracy(epsilon); }

Saddle SaddleForDelta(std::span<const Counted> events, double log_delta) {
  // Minimises Chernoff's bounds; a convex function over a linear one is quasiconvex.
  const auto bound = [&](double tilt) {
    return (CumulantsAt(events, tilt).log_moment + LogKernel(tilt) - log_delta) / tilt;
  };
  Saddle saddle;
  saddle.tilt = Minimise(bound);
  if (bound(saddle.tilt) <= 0) return SaddleForEpsilon(events, 0);
  saddle.tilt = std::min(saddle.tilt, SteepestAt(bound(saddle.tilt)));
  saddle.cumulants = CumulantsAt(events, saddle.tilt);
  saddle.log_delta = log_delta;
  saddle.epsilon =
      std::clamp((saddle.cumulants.log_moment - LogWidth(saddle) - log_delta) / saddle.tilt, 0.0,
                 bound(saddle.tilt));
  return saddle;
}

Saddle SaddleForEpsilon(std::span<const Counted> events, double epsilon) {
  const auto bound = [&](double tilt) {
    return CumulantsAt(events, tilt).log_moment + LogKernel(tilt) - tilt * epsilon;
  };
  Saddle saddle;
  saddle.tilt = std::min(Minimise(bound), SteepestAt(epsilon));
  saddle.cumulants = CumulantsAt(events, saddle.tilt);
  saddle.epsilon = epsilon;
  saddle.log_delta =
      std::min({0.0, bound(saddle.tilt),
                saddle.cumulants.log_moment - saddle.tilt * epsilon - LogWidth(saddle)});
  return saddle;
}

}  // namespace tacit::privacy::pld
