#pragma once

#include <cstdint>

#include "base/ids.h"

namespace tacit::privacy {

// An ESTIMATE, not a bound: the epsilon of the Gaussian differential privacy that many
// Poisson-sampled steps tend to (Bu et al. 2020, mu = q sqrt(T (e^(1/s^2) - 1))). It is too low
// more often than too high - down to half a per cent of the truth for few steps - and must never be
// promised.
double GdpCltEpsilonEstimate(double noise_multiplier, double sampling_rate, uint64_t steps,
                             Delta delta);

}  // namespace tacit::privacy
