#include "privacy/gdp.h"

#include <cmath>

#include "privacy/gaussian.h"

namespace tacit::privacy {

double GdpCltEpsilonEstimate(double noise_multiplier, double sampling_rate, uint64_t steps,
                             Delta delta) {
  const double gain = std::expm1(1 / (noise_multiplier * noise_multiplier));
  const double mu = sampling_rate * std::sqrt(static_cast<double>(steps) * gain);
  return GaussianEpsilon(mu, delta).value;
}

}  // namespace tacit::privacy
