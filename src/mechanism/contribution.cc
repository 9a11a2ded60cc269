#include "mechanism/contribution.h"

#include <algorithm>
#include <cmath>

namespace tacit::mechanism {

// Computes in integers: active * steps^2 <= (clip / step)^2, where clip / step is below 2^31.
int64_t ContributionSteps(double clip, const Grid& grid, size_t active) {
  const auto whole = static_cast<uint64_t>(clip / grid.step);
  auto steps =
      static_cast<uint64_t>(static_cast<double>(whole) / std::sqrt(static_cast<double>(active)));
  while (active * steps * steps > whole * whole) --steps;
  return static_cast<int64_t>(std::min(static_cast<double>(steps), std::floor(1 / grid.step)));
}

double ContributionScale(double clip, const Grid& grid, std::span<const double> weights) {
  double largest = 0, squares = 0;
  for (const double weight : weights) largest = std::max(largest, weight);
  if (!(largest > 0)) return 0;
  for (const double weight : weights) squares += (weight / largest) * (weight / largest);
  const auto whole = static_cast<uint64_t>(clip / grid.step);
  const double norm = largest * std::sqrt(squares);
  // Weights so small that the quotient overflows count as no weights.
  if (!std::isfinite(static_cast<double>(whole) / norm)) return 0;
  for (double scale = static_cast<double>(whole) / norm;; scale *= 1 - 0x1p-21) {
    uint64_t steps_squared = 0;
    for (const double weight : weights) {
      const auto steps = static_cast<uint64_t>(StepsAt(weight, scale));
      steps_squared += steps * steps;
    }
    if (steps_squared <= whole * whole) return scale;
  }
}

}  // namespace tacit::mechanism
