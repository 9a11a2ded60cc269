#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "privacy/charge.h"
#include "privacy/event.h"
#include "privacy/pld.h"

// Calibrates noise: finds the least noise that keeps a promise, by each accountant. The result is
// certified: the accountant's own epsilon for the steps and the events beside them is at most the
// target.
namespace tacit::privacy {

struct CalibrationTarget {
  double epsilon = 0;
  double delta = 0;
  double sampling_rate = 1;
  uint64_t steps = 1;
  // For CalibrateSteps alone: the steps come in blocks, as in Charge; 0: they do not.
  uint64_t block_steps = 0;
  // Other events of the same unit, at a fixed cost: a vocabulary's histogram of each period, say.
  std::vector<CountedEvent> beside = {};
  // For CalibrateSteps alone: the coins of steps that sample count as known.
  bool coins_known = false;
  Laws laws = nullptr;  // saves time over several calibrations; may be null
};

// All functions return kInvalidArgument for a target out of its domain or out of reach (a noise
// multiplier outside [0.05, 1e7]), and for one that `beside` exceeds alone.

// The noise multiplier of a step that a learner takes, slightly larger than the least:
// participations that are summed up in floating point, and the ledger's bound, which is certified
// step by step, then stay within the promise. Steps that surely have the unit (a sampling rate of
// 1) are calibrated in closed form, others by the PLD accountant under add-or-remove. REQUIRES
// whole blocks.
Result<double> CalibrateSteps(CalibrationTarget target);

// For `once`: each step counts in full. Exact, in closed form, if all events are Gaussian; else as
// CalibratePld. REQUIRES a sampling rate of 1.
Result<double> CalibrateOnce(const CalibrationTarget& target);
// For the Poisson-sampled Gaussian; the noise multiplier is within 1e-3 (PLD) or 1e-6 (RDP) of the
// accountant's own root. With PLD, that widens if the events beside the steps leave them less than
// a tenth of the target.
Result<double> CalibratePld(const CalibrationTarget& target, Adjacency adjacency);
// For allocations: `steps` blocks, in each of which a unit is in one of `block_steps` steps. As
// CalibratePld under add-or-remove, with a noise multiplier of at least 0.2. REQUIRES a sampling
// rate of 1.
Result<double> CalibrateAllocation(const CalibrationTarget& target, uint64_t block_steps);
// Uses the given orders; DenseRdpOrders() if there are none.
Result<double> CalibrateRdp(const CalibrationTarget& target, std::span<const double> orders);

}  // namespace tacit::privacy
