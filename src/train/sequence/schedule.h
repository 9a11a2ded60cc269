#pragma once

#include <algorithm>
#include <cstdint>

namespace tacit::train {

// A learning rate's rise and fall over a run of known length: linear from zero to full over the
// first share of the steps, then, if it decays, linear to zero.
struct RateSchedule {
  uint64_t steps = 1;
  double warm_up = 0;  // share of the steps, in [0, 1]
  bool decays = false;

  // The factor for a step, counted from 0. Above 0 for every step of the run.
  double Factor(uint64_t step) const {
    const double all = static_cast<double>(steps), rising = warm_up * all;
    const double done = static_cast<double>(std::min(step, steps - 1));
    if (done + 1 < rising) return (done + 1) / rising;
    return decays ? (all - done) / std::max(1.0, all - std::max(0.0, rising - 1)) : 1.0;
  }
};

}  // namespace tacit::train
