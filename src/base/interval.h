#pragma once

#include <algorithm>
#include <cmath>

namespace tacit {

// Deviations of a normal that hold 95 % of it.
inline constexpr double kDeviationsOf95 = 1.959964;

// The 95 % interval of a figure; NaN where nothing is known of it.
struct Interval {
  double low = NAN, high = NAN;
};

// The interval of a share, by `hits` of `asked` independent questions (Wilson 1927).
inline Interval ShareInterval(double hits, double asked) {
  if (!(asked > 0)) return {};
  const double share = hits / asked, z2 = kDeviationsOf95 * kDeviationsOf95;
  const double middle = (share + z2 / (2 * asked)) / (1 + z2 / asked);
  const double half = kDeviationsOf95 / (1 + z2 / asked) *
                      std::sqrt(share * (1 - share) / asked + z2 / (4 * asked * asked));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

// The interval of a probability that was estimated with this deviation.
inline Interval ProbabilityInterval(double estimate, double deviation) {
  const double half = kDeviationsOf95 * deviation;
  if (std::isnan(estimate) || std::isnan(half)) return {};
  return {std::max(0.0, estimate - half), std::min(1.0, estimate + half)};
}

}  // namespace tacit
