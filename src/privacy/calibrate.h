#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "privacy/charge.h"

// The least noise that keeps a promise, by each accountant. What comes back is certified: the
// accountant's own epsilon at it is at most the target.
namespace tacit::privacy {

struct CalibrationTarget {
  double epsilon = 0;
  double delta = 0;
  double sampling_rate = 1;
  uint64_t steps = 1;
};

// For the Poisson-sampled Gaussian; the noise multiplier is within 1e-3 (kPld) or 1e-6 (RDP) of the
// accountant's own root. kInvalidArgument for a target out of its domain or out of reach: a noise
// multiplier outside [0.05, 1e7].
Result<double> CalibratePld(const CalibrationTarget& target, Adjacency adjacency);
// Over the given orders; DenseRdpOrders() where there are none.
Result<double> CalibrateRdp(const CalibrationTarget& target, std::span<const double> orders);

}  // namespace tacit::privacy
