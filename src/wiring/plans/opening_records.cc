#include "wiring/plans/opening_records.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tacit::wiring {

// A record predicted by 1/2 costs ln 2 - H(r) more than by the rate r; a rate found to a variance v
// of its logit costs v r (1 - r) / 2 in each record of the next period. With L records v is, by the
// delta method, 1 / (L r (1 - r)) for chance, and (clicks^2 + r^2 events^2) / (L r (1 - r))^2 for
// noise. The least sum lies where its derivative by L, which rises, is 0. r = 1/4 stands for all
// rates: the root of the third power that L goes with forgives much.
uint64_t OpeningRecords(uint64_t period, double clicks_noise, double events_noise) {
  constexpr double kRate = 0.25, kVariance = kRate * (1 - kRate);
  const double blind =
      std::numbers::ln2 + kRate * std::log(kRate) + (1 - kRate) * std::log1p(-kRate);
  const auto next = static_cast<double>(period);
  const double noise =
      (clicks_noise * clicks_noise + kRate * kRate * events_noise * events_noise) / kVariance;
  double low = 1, high = std::max(1.0, next);
  for (int i = 0; i < 100; ++i) {
    const double length = (low + high) / 2;
    const double spared = next * (0.5 / (length * length) + noise / (length * length * length));
    (spared > blind ? low : high) = length;
  }
  return static_cast<uint64_t>(std::ceil(high));
}

}  // namespace tacit::wiring
