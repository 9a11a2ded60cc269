#pragma once

#include "base/result.h"

namespace tacit::privacy {

// What a release, or all of a period's or a run's, may be as one Gaussian: where the grids of noise
// end, with room for every share of it.
inline constexpr double kMuLeast = 1e-6, kMuMost = 1e3;

// What rounding may add when mu^2 is summed up again. Who gives a mu to spend allows that much
// more; who spends it makes the noise that much larger.
inline constexpr double kMuMargin = 1 + 1e-12;

// kInvalidArgument for one outside of these; infinite, for no noise, is none.
Status CheckMu(double mu);

}  // namespace tacit::privacy
