#pragma once

#include <vector>

#include "privacy/pld/lattice_law.h"

namespace tacit::privacy::pld {

// What covers the error of an IntervalMass's gain: this share of a cell's mass is moved to the safe
// side.
inline constexpr double kNudge = 1e-7;

// What one cell's two halves hold; gains are taken against the cell's end that the half touches.
struct Halves {
  IntervalMass left, right;
};

// The lower law of a grid from what its cells hold; see lattice_law.h for why it is one.
LatticeLaw LowerLaw(const LossLaw& law, const Grid& grid, const std::vector<Halves>& cells);

}  // namespace tacit::privacy::pld
