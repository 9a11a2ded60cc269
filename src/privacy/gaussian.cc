#include "privacy/gaussian.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "base/check.h"
#include "privacy/infinity.h"

namespace tacit::privacy {
namespace {

// Relative accuracy of GaussianLogDelta. Inversions aim this much below the target, so that their
// results are on the safe side.
constexpr double kLogDeltaAccuracy = 1e-12;

// phi and Phi are the standard normal density and distribution, Psi = 1 - Phi.
double LogDensity(double x) { return -x * x / 2 - std::log(2 * std::numbers::pi) / 2; }

// Mills' ratio R(x) = Psi(x) / phi(x). Infinite below about -38.
double MillsRatio(double x) {
  if (x < 4) {
    const double square = x * x;
    const double rest = std::fma(x, x, -square);  // exp() would magnify the square's rounding
    return std::sqrt(std::numbers::pi / 2) * std::exp(square / 2) * (1 + rest / 2) *
           std::erfc(x / std::numbers::sqrt2);
  }
  // Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + ...)))), from deep enough inside
  // outwards.
  double fraction = x;
  for (int k = 20 + static_cast<int>(1600 / (x * x)); k >= 1; --k) fraction = x + k / fraction;
  return 1 / fraction;
}

// -R'(x) = 1 - x R(x), positive and falling.
double MillsSlope(double x) {
  if (x < 20) return 1 - x * MillsRatio(x);
  // The asymptotic series 1/x^2 - 3/x^4 + 15/x^6 - ..., accurate to 1e-17 from x = 20.
  const double y = 1 / (x * x);
  double sum = 0, term = y;
  for (int k = 1; k <= 16; ++k) {
    sum += term;
    term *= -(2 * k + 1) * y;
  }
  return sum;
}

// R(a) - R(b) for b - a = width > 0.
double MillsDrop(double a, double b, double width) {
  if (width > 0.5) return MillsRatio(a) - MillsRatio(b);
  // The difference would cancel. Integrates the slope instead, by 10-point Gauss-Legendre.
  static constexpr double kNode[] = {0.1488743389816312, 0.4333953941292472, 0.6794095682990244,
                                     0.8650633666889845, 0.9739065285171717};
  static constexpr double kWeight[] = {0.2955242247147529, 0.2692667193099963, 0.2190863625159820,
                                       0.1494513491505806, 0.0666713443086881};
  const double middle = a + width / 2;
  double sum = 0;
  for (int i = 0; i < 5; ++i) {
    const double offset = kNode[i] * width / 2;
    sum += kWeight[i] * (MillsSlope(middle - offset) + MillsSlope(middle + offset));
  }
  return sum * width / 2;
}

// ln(delta), lowered by the accuracy of the values compared with it.
double SafeTarget(Delta delta) {
  TACIT_CHECK(delta.value > 0 && delta.value < 1, "delta must be in (0, 1)");
  return std::log(delta.value) * (1 + kLogDeltaAccuracy);
}

// Bisects [low, high] down to neighbouring doubles; `below(x)` is true up to the root. Uses the
// geometric mean while the bracket spans orders of magnitude. Returns {last true, first false}.
template <class Below>
std::pair<double, double> Bisect(double low, double high, Below below) {
  while (true) {
    const double middle =
        high > 4 * low && low > 0 ? std::sqrt(low) * std::sqrt(high) : low + (high - low) / 2;
    if (!(low < middle && middle < high)) return {low, high};
    (below(middle) ? low : high) = middle;
  }
}

}  // namespace

double GaussianLogDelta(double mu, double epsilon) {
  TACIT_CHECK(mu >= 0 && epsilon >= 0);
  if (mu == 0 || epsilon == kInfinity) return -kInfinity;
  if (mu == kInfinity) return 0;
  // delta = Psi(a) - e^epsilon Psi(b), and e^epsilon phi(b) = phi(a).
  const double a = std::fma(-mu / 2, mu, epsilon) / mu;
  const double b = a + mu;
  if (a == -kInfinity) return 0;  // mu^2 is no number any more
  if (a < -1) {
    // delta is near 1, so compute its complement, Phi(a) + e^epsilon Psi(b).
    const double missing =
        std::erfc(-a / std::numbers::sqrt2) / 2 + std::exp(LogDensity(a)) * MillsRatio(b);
    return std::log1p(-missing);
  }
  if (LogDensity(a) == -kInfinity) return -kInfinity;
  return LogDensity(a) + std::log(MillsDrop(a, b, mu));
}

Delta GaussianDelta(double mu, Epsilon epsilon) {
  return Delta(std::exp(GaussianLogDelta(mu, epsilon.value)));
}

Epsilon GaussianEpsilon(double mu, Delta delta) {
  const double target = SafeTarget(delta);
  TACIT_CHECK(mu >= 0);
  if (mu == kInfinity) return Epsilon(kInfinity);
  const auto above = [&](double epsilon) { return GaussianLogDelta(mu, epsilon) > target; };
  if (!above(0)) return Epsilon(0);
  double high = 1;
  while (above(high)) {
    high *= 2;
    if (high == kInfinity) return Epsilon(kInfinity);
  }
  return Epsilon(Bisect(0, high, above).second);
}

double GaussianMu(Epsilon epsilon, Delta delta) {
  const double target = SafeTarget(delta);
  TACIT_CHECK(epsilon.value >= 0);
  if (epsilon.value == kInfinity) return kInfinity;
  const auto allowed = [&](double mu) { return GaussianLogDelta(mu, epsilon.value) <= target; };
  double high = 1;
  while (allowed(high)) high *= 2;
  return Bisect(0, high, allowed).first;
}

NoiseMultiplier CalibrateGaussian(Epsilon epsilon, Delta delta, uint64_t participations) {
  TACIT_CHECK(participations > 0);
  // The margin covers the rounding when a ledger sums the participations up again.
  return NoiseMultiplier(std::sqrt(static_cast<double>(participations)) /
                         GaussianMu(epsilon, delta) * (1 + kLogDeltaAccuracy));
}

}  // namespace tacit::privacy
