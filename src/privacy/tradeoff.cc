#include "privacy/tradeoff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "privacy/gaussian.h"

namespace tacit::privacy {
namespace {

// The greatest value of a function with one maximum on [low, high], by golden sections. Failures of
// the function end the search.
template <class F>
Result<double> Greatest(F&& at, double low, double high) {
  constexpr double kSection = 0.6180339887498949;
  constexpr int kSections = 16;  // of the interval 5e-4 is left
  double a = high - kSection * (high - low), b = low + kSection * (high - low);
  TACIT_ASSIGN(double of_a, at(a));
  TACIT_ASSIGN(double of_b, at(b));
  double most = std::max(of_a, of_b);
  for (int i = 0; i < kSections; ++i) {
    most = std::max({most, of_a, of_b});
    if (of_a >= of_b) {
      high = std::exchange(b, a);
      of_b = of_a;
      a = high - kSection * (high - low);
      TACIT_ASSIGN(of_a, at(a));
    } else {
      low = std::exchange(a, b);
      of_a = of_b;
      b = low + kSection * (high - low);
      TACIT_ASSIGN(of_b, at(b));
    }
  }
  return std::max({most, of_a, of_b});
}

}  // namespace

Result<TradeOff> TradeOff::Of(PldAccountant& accountant) {
  if (const auto mu = accountant.Mu()) return OfGaussian(*mu);
  // A hundredth of a usual loss moves the advantage by its square.
  TACIT_ASSIGN(const CertifiedInterval usual, accountant.Epsilon(Delta(1e-3)));
  const auto curve = [&accountant](double epsilon) -> Result<double> {
    TACIT_ASSIGN(const CertifiedInterval delta, accountant.DeltaAt(epsilon));
    return delta.upper;
  };
  return TradeOff(curve, std::clamp(usual.upper / 100, 1e-6, 0.01));
}

TradeOff TradeOff::OfGaussian(double mu) {
  return TradeOff(
      [mu](double epsilon) -> Result<double> { return GaussianDelta(mu, Epsilon(epsilon)).value; });
}

Result<double> TradeOff::Advantage() const {
  // Every point of the curve gives a bound: where it is not known, one farther from 0 does.
  constexpr double kFar = 4;
  auto delta = curve_(least_);
  double epsilon = least_;
  while (!delta && epsilon < kFar) {
    epsilon = std::max(4 * epsilon, 1e-3);
    delta = curve_(epsilon);
  }
  if (!delta) return Fail(std::move(delta.error()));
  return AdvantageAt(epsilon, *delta);
}

Result<double> TradeOff::MissedAtLeast(double false_alarms) const {
  TACIT_CHECK(false_alarms > 0 && false_alarms < 1, "a rate of false alarms lies between 0 and 1");
  // An unknown place of the curve bounds nothing. Beyond -ln(false alarms) the first bound is
  // below 0. Both are concave, the first in e^epsilon and the second in e^-epsilon.
  const double far = -std::log(false_alarms), from = 5 * least_;
  const auto few = [&](double epsilon) -> Result<double> {
    const auto delta = curve_(epsilon);
    return delta ? 1 - *delta - std::exp(epsilon) * false_alarms : 0;
  };
  const auto many = [&](double epsilon) -> Result<double> {
    const auto delta = curve_(epsilon);
    return delta ? std::exp(-epsilon) * (1 - *delta - false_alarms) : 0;
  };
  TACIT_ASSIGN(const double by_few, Greatest(few, from, std::max(far, 2 * from)));
  // The second bound's slope is no steeper than -1: it is the better one for many false alarms.
  TACIT_ASSIGN(const double beside_zero, many(from));
  if (by_few > beside_zero) return std::max(0.0, by_few);
  constexpr double kFarthest = 40;
  TACIT_ASSIGN(const double by_many, Greatest(many, from, kFarthest));
  return std::max({0.0, by_few, by_many});
}

double AdvantageAt(double epsilon, double delta) {
  // The lines b >= 1 - delta - e^epsilon a and its mirror meet where a = b.
  return std::min(1.0, std::tanh(epsilon / 2) + 2 * delta / (1 + std::exp(epsilon)));
}

double MissedAt(double epsilon, double delta, double false_alarms) {
  return std::max({0.0, 1 - delta - std::exp(epsilon) * false_alarms,
                   std::exp(-epsilon) * (1 - delta - false_alarms)});
}

std::string PlainWords(double advantage) {
  if (!(advantage < 1))
    return "with all else known, somebody may be certain whether you were in it";
  // 50.0001 of 100 are said as such: the digits grow until the share is told from a guess.
  const double share = 100 * AccuracyAtMost(advantage);
  double unit = 10;
  int digits = 1;
  while (digits < 6 && std::ceil(share * unit) / unit - 50 > 1.2 * (share - 50)) {
    unit *= 10;
    ++digits;
  }
  const double rounded = std::min(100.0, std::ceil(share * unit - 1e-9) / unit);
  return fmt::format(
      "with all else known, somebody guesses right at most {:.{}f} times of 100; a coin does 50",
      rounded, digits);
}

}  // namespace tacit::privacy
