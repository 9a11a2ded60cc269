#pragma once

#include <cstdint>
#include <vector>

#include "privacy/pld/loss_law.h"

// One event's loss put on a lattice, once from above and once from below.
//
// Domination. For masses p_j >= 0 at losses l_j let f(x) = sum p_j (1 - x e^(-l_j))_+, the
// hockey-stick divergence at x = e^epsilon. If f <= g pointwise for one event, the same holds for
// any composition with other events, since f enters linearly with weights that are not negative.
// Both laws below are built to stay on one side of the event's own curve g at every x > 0:
//   upper: the chords of g over the cells ("connect the dots", Doroshenko et al. 2022);
//   lower: below one tangent of g in each cell. The tangents' own corners are the losses of merged
//     outcomes and off the lattice; the corner at a lattice point is the lesser of the values of
//     its two tangents there.
// Both are off by the square of a cell's length only.
namespace tacit::privacy::pld {

struct LatticeLaw {
  std::vector<int64_t> index;  // loss / step, ascending
  std::vector<double> mass;
  double infinite_mass = 0;  // mass of an upper law above its last point
};

struct LatticeLaws {
  LatticeLaw upper, lower;
};

// Checks that an upper law accounts for all outcomes. A mass that is no number, or is missing,
// would make the law's curve a little lower and say nothing.
bool IsWhole(const LatticeLaw& upper);

// Points of a lattice: every `spacing`-th around the centre, sparser further away.
struct Grid {
  double step = 0;
  std::vector<int64_t> index;

  double Loss(size_t i) const { return static_cast<double>(index[i]) * step; }
};

// Makes cells `spacing` steps long near `centre`; further away, a `cells_per_scale`-th of the
// distance if that is longer. All but `tail` of the law is within the grid.
Grid MakeGrid(const LossLaw& law, double step, int64_t spacing, double centre, double tail,
              double cells_per_scale);

// Puts a law on the grid. The lower law is empty without `with_lower`.
LatticeLaws Discretise(const LossLaw& law, const Grid& grid, bool with_lower = true);

// The laws of the worst rho-zCDP mechanism, from its delta(epsilon) alone. The upper law is the
// convex hull of the conversion's values on the grid; the lower one is that of the Gaussian
// mechanism, which is rho-zCDP too.
LatticeLaws DiscretiseZcdp(double rho, const Grid& grid);

}  // namespace tacit::privacy::pld
