#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "privacy/charge.h"
#include "privacy/event.h"

// The least noise that keeps a promise, by each accountant. What comes back is certified: the
// accountant's own epsilon at it, of the steps and of what is beside them, is at most the target.
namespace tacit::privacy {

struct CalibrationTarget {
  double epsilon = 0;
  double delta = 0;
  double sampling_rate = 1;
  uint64_t steps = 1;
  // What the same unit takes part in beside the steps, at a price that is fixed: a vocabulary's
  // histogram of each period, say.
  std::vector<CountedEvent> beside = {};
};

// All refuse, as kInvalidArgument, a target out of its domain or out of reach (a noise multiplier
// outside [0.05, 1e7]), and one that `beside` exceeds alone.

// For `once`: steps are participations in full. Exact, in closed form, while there is nothing but
// Gaussians; else as CalibratePld. REQUIRES a sampling rate of 1.
Result<double> CalibrateOnce(const CalibrationTarget& target);
// For the Poisson-sampled Gaussian; the noise multiplier is within 1e-3 (PLD) or 1e-6 (RDP) of the
// accountant's own root. With PLD, what is beside the steps widens that where it leaves them less
// than a tenth of the target.
Result<double> CalibratePld(const CalibrationTarget& target, Adjacency adjacency);
// Over the given orders; DenseRdpOrders() where there are none.
Result<double> CalibrateRdp(const CalibrationTarget& target, std::span<const double> orders);

}  // namespace tacit::privacy
