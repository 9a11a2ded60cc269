#include "privacy/weakness.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace tacit::privacy {
namespace {

constexpr double kEpsilonMuch = 20, kDeltaMuch = 1e-3;

}  // namespace

Weakness WeaknessOf(double epsilon, double delta) {
  Weakness weak;
  if (epsilon > kEpsilonMuch && std::isfinite(epsilon))
    weak.epsilon = fmt::format(
        "{} hides next to nothing: what is seen may be e^{} times as likely with a record as "
        "without it; 1 to 10 are usual",
        epsilon, epsilon);
  if (delta >= kDeltaMuch)
    weak.delta = fmt::format(
        "with {} the promise still holds where one unit in {:.0f} is revealed whole; it should be "
        "well below one over the number of units",
        delta, 1 / delta);
  return weak;
}

std::string WeaknessAmong(double delta, double units) {
  if (units < 1 || delta * units < 1) return "";
  return fmt::format(
      "with {} the promise still holds where {} of {} units are revealed whole; it should be well "
      "below one over their number",
      delta, WithThousands(static_cast<uint64_t>(delta * units)),
      WithThousands(static_cast<uint64_t>(units)));
}

}  // namespace tacit::privacy
