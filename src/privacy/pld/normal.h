#pragma once

#include <array>
#include <cmath>
#include <numbers>

namespace tacit::privacy::pld {

// Mass of N(0, 1) in (a, b], to 1e-15 of the mass beyond its inner end.
inline double NormalMass(double a, double b) {
  constexpr double kScale = std::numbers::sqrt2 / 2;
  if (!(a < b)) return 0;
  if (a > 0) return (std::erfc(a * kScale) - std::erfc(b * kScale)) / 2;
  if (b < 0) return (std::erfc(-b * kScale) - std::erfc(-a * kScale)) / 2;
  return 1 - std::erfc(-a * kScale) / 2 - std::erfc(b * kScale) / 2;
}

// The density times e^exponent.
inline double NormalDensityTimes(double x, double exponent) {
  return std::exp(exponent - x * x / 2) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}
inline double NormalDensity(double x) { return NormalDensityTimes(x, 0); }

// e^x - 1 to 1e-10, in a few multiplications for small x.
inline double SmallExpm1(double x) {
  if (std::abs(x) > 0.1) return std::exp(x) - 1;
  return x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6)))));
}

// The integral of `f` over [a, b], by Gauss-Legendre with six points on each panel of at most the
// given width; three if [a, b] is at most an eighth of a panel.
template <class F>
double Integrate(double a, double b, double panel, F f) {
  static constexpr std::array<double, 3> kNode = {0.2386191860831969, 0.6612093864662645,
                                                  0.9324695142031521};
  static constexpr std::array<double, 3> kWeight = {0.4679139345726910, 0.3607615730481386,
                                                    0.1713244923791704};
  static constexpr double kNodeOfThree = 0.7745966692414834;
  if (!(a < b)) return 0;
  if (b - a <= panel / 8) {
    const double half = (b - a) / 2, middle = a + half, offset = kNodeOfThree * half;
    return half / 9 * (8 * f(middle) + 5 * (f(middle - offset) + f(middle + offset)));
  }
  const double panels = std::ceil((b - a) / panel);
  const double half = (b - a) / panels / 2;
  double sum = 0;
  for (double i = 0; i < panels; ++i) {
    const double middle = a + (2 * i + 1) * half;
    for (size_t k = 0; k < kNode.size(); ++k)
      sum += kWeight[k] * (f(middle - kNode[k] * half) + f(middle + kNode[k] * half));
  }
  return sum * half;
}

}  // namespace tacit::privacy::pld
