#pragma once

#include "base/result.h"

namespace tacit::privacy {

// Range of mu for a release, a period or a run as one Gaussian. The noise grids cover it, with room
// for every share of it.
inline constexpr double kMuLeast = 1e-6, kMuMost = 1e3;

// Margin for the rounding when mu^2 is summed up again. A budget of mu is checked with this factor
// of tolerance; a spender makes its noise larger by it.
inline constexpr double kMuMargin = 1 + 1e-12;

// Returns kInvalidArgument for a mu outside this range; infinity (no noise) passes.
Status CheckMu(double mu);

}  // namespace tacit::privacy
