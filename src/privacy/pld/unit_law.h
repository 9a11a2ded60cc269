#pragma once

#include <cstdint>
#include <vector>

#include "privacy/pld/atoms.h"
#include "privacy/pld/lognormal.h"

// One step's factor U, bounded on either side in convex order.
namespace tacit::privacy::pld {

// U in cells of `bits` bits, between the values with `tail` below (of mass) and above (of mass
// weighted by U). The upper law caps U at the last value: `capped` is E of what that takes away.
struct UnitAtoms {
  Atoms atoms;
  double capped = 0;
};
UnitAtoms CutUnit(const Lognormal& u, double tail, int bits, Bound bound);
// The same of U above `from` alone.
UnitAtoms CutUnitAbove(const Lognormal& u, double from, double tail, int bits, Bound bound);

// U on multiples of a step, between two of them; mass[i] is at (first + i) * step.
struct UnitLattice {
  double step = 0;
  int64_t first = 0;
  std::vector<double> mass;
};

// The upper and the lower law of U within (first * step, last * step].
//
// Upper: each cell's mass goes to its two ends so that the mean is kept.
// Lower: E (U' - a)+ has its corners on the lattice and must stay below C(a) = E (U - a)+. It does
// if in each cell both ends lie below one tangent of C; the tangents are those at the cells'
// middles. So C is lowered at each lattice point by the greater e of the distances to its two
// cells' tangents, and the mass there is the upper law's less the second difference of e. At either
// end, where mass falls off within less than a step, the tangents are the lines of no mass (1 - a
// and 0): there the mass beyond is collected. Corners that bend the wrong way are left out, which
// lowers the curve.
struct UnitLattices {
  UnitLattice upper, lower;
};
UnitLattices PutUnitOnLattice(const Lognormal& u, double step, int64_t first, int64_t last,
                              bool with_lower);

}  // namespace tacit::privacy::pld
