#include "privacy/pld/lognormal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "privacy/infinity.h"
#include "privacy/pld/normal.h"

namespace tacit::privacy::pld {
namespace {

double UpperTail(double z) { return std::erfc(z * (std::numbers::sqrt2 / 2)) / 2; }

// Cells no wider than this, in Z and in s Z, are integrated; wider ones lose nothing in closed
// form.
constexpr double kNarrow = 0.3;
constexpr double kPanel = 0.2;

}  // namespace

double Lognormal::Z(double u) const { return u > 0 ? std::log(u) / s_ + s_ / 2 : -kInfinity; }
double Lognormal::At(double z) const { return std::exp(s_ * (z - s_ / 2)); }
double Lognormal::Below(double u) const { return UpperTail(-Z(u)); }
double Lognormal::Above(double u) const { return UpperTail(Z(u)); }
double Lognormal::WeightedAbove(double u) const { return UpperTail(Z(u) - s_); }
double Lognormal::deviation() const { return std::sqrt(std::expm1(s_ * s_)); }

Lognormal::Part Lognormal::Over(double a, double b) const {
  const double low = Z(a);
  const double width = a > 0 && b < kInfinity ? std::log1p((b - a) / a) / s_ : kInfinity;
  if (width * std::max(1.0, s_) > kNarrow) {
    const double high = Z(b);
    const double mass = NormalMass(low, high), weighted = NormalMass(low - s_, high - s_);
    return {mass, std::max(0.0, weighted - a * mass),
            b < kInfinity ? std::max(0.0, b * mass - weighted) : 0};
  }
  // U = a e^(s y) at Z = low + y, so U - a = a (e^(s y) - 1).
  const double panel = kPanel / std::max(1.0, s_) * (std::abs(low) > 4 ? 0.5 : 1);
  const double density = NormalDensity(low);
  const auto at = [&](double y) { return density * std::exp(-y * (low + y / 2)); };
  const double mass = Integrate(0, width, panel, at);
  const double beyond =
      a * Integrate(0, width, panel, [&](double y) { return at(y) * SmallExpm1(s_ * y); });
  return {mass, beyond, std::max(0.0, (b - a) * mass - beyond)};
}

}  // namespace tacit::privacy::pld
