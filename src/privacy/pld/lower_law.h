#pragma once

#include <vector>

#include "privacy/pld/lattice_law.h"

namespace tacit::privacy::pld {

// This share of a cell's mass is moved to the safe side, to cover the error of IntervalMass::gain.
inline constexpr double kNudge = 1e-7;

// The masses of one cell's halves; each gain is against the cell's end that the half touches.
struct Halves {
  IntervalMass left, right;
};

// Builds the lower law of a grid from its cells; lattice_law.h shows why it is one.
LatticeLaw LowerLaw(const LossLaw& law, const Grid& grid, const std::vector<Halves>& cells);

}  // namespace tacit::privacy::pld
