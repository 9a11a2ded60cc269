#pragma once

#include "base/ids.h"

// The exact privacy of Gaussian mechanisms (Balle and Wang 2018). A sequence of Gaussian queries
// with sensitivity-to-noise ratios m_1, m_2, ... is one with mu = sqrt(sum m_i^2), and
//   delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).
// Relative accuracy 1e-12 in ln delta down to delta 1e-300.
namespace tacit::privacy {

// ln delta at this epsilon >= 0. -infinity for mu = 0, 0 for infinite mu.
double GaussianLogDelta(double mu, double epsilon);
Delta GaussianDelta(double mu, Epsilon epsilon);

// The smallest epsilon >= 0 with delta(epsilon) <= delta; infinite for infinite mu.
// REQUIRES 0 < delta < 1.
Epsilon GaussianEpsilon(double mu, Delta delta);

// The largest mu whose epsilon at `delta` is at most `epsilon`; never above the truth.
double GaussianMu(Epsilon epsilon, Delta delta);

// The smallest noise multiplier for `participations` queries on one unit.
NoiseMultiplier CalibrateGaussian(Epsilon epsilon, Delta delta, uint64_t participations);

}  // namespace tacit::privacy
