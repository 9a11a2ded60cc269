#include "privacy/pld/lattice_law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "privacy/infinity.h"
#include "privacy/pld/lower_law.h"

namespace tacit::privacy::pld {
namespace {

// The length of cells: `spacing`, longer far from the middle, shorter in the crowd between 0 and an
// edge of the law.
class CellLength {
 public:
  CellLength(const LossLaw& law, double step, int64_t spacing, double cells_per_scale)
      : spacing_(spacing), cells_per_scale_(cells_per_scale), edge_(law.Edge() / step) {}

  // Returns the length of the `ordinal`-th cell from the middle, at lattice index i. Lengths vary
  // by multiples of the golden ratio. Equal lengths would make the law's transform return to 1 at a
  // multiple of the lowest frequency, and the whole series would have to be summed.
  int64_t At(int64_t i, int64_t distance, int64_t ordinal) const {
    double cell =
        std::max(static_cast<double>(spacing_), static_cast<double>(distance) / cells_per_scale_);
    // Cells shrink step by step towards the crowd: much mass in a long cell next to a short one
    // could not be moved to the short one's points.
    if (edge_ > 0) {
      const double outside = std::abs(static_cast<double>(i)) - edge_;
      cell = std::min(cell, std::max(1.0, edge_ / kCellsToEdge) + std::max(0.0, outside) / 5);
    }
    const double turn = static_cast<double>(ordinal) * 0.6180339887498949;
    const double varied = cell * (0.75 + 0.5 * (turn - std::floor(turn)));
    return cell < 1.5 ? 1 : static_cast<int64_t>(std::round(varied));
  }

 private:
  static constexpr double kCellsToEdge = 40;
  int64_t spacing_;
  double cells_per_scale_, edge_;
};

// Builds chords over the cells: a cell's mass goes to its two ends so that E[e^-L] is kept.
LatticeLaw UpperLaw(const LossLaw& law, const Grid& grid, const std::vector<Halves>& cells) {
  LatticeLaw upper;
  upper.index = grid.index;
  upper.mass.assign(grid.index.size(), 0);
  upper.mass[0] = law.Over(-kInfinity, grid.Loss(0), grid.Loss(0)).mass;
  for (size_t j = 0; j < cells.size(); ++j) {
    const double length = grid.Loss(j + 1) - grid.Loss(j);
    const double all = cells[j].left.mass + cells[j].right.mass;
    const double gain = cells[j].left.gain - std::expm1(-length) * cells[j].right.mass +
                        std::exp(-length) * cells[j].right.gain;
    const double up = std::clamp(gain / -std::expm1(-length) + kNudge * all, 0.0, all);
    upper.mass[j] += all - up;
    upper.mass[j + 1] += up;
  }
  upper.infinite_mass =
      law.Over(grid.Loss(grid.index.size() - 1), kInfinity, grid.Loss(grid.index.size() - 1)).mass;
  return upper;
}

// Bun and Steinke's delta for rho-zCDP as improved by Canonne, Kamath and Steinke,
//   ln delta = m ((1 + m) rho - epsilon) - ln m - (1 + m) ln(1 + 1/m),   order 1 + m,
// a bound at every m > 0 and least where rho (1 + 2m) - epsilon = ln(1 + 1/m). The difference of
// the sides rises and is concave, so Newton's steps reach its root from the left. `more` is m,
// initially that of a nearby point.
double ZcdpDelta(double rho, double epsilon, double* more) {
  // Below 0 the curve is its own mirror image, g(x) = 1 - x + x g(1/x).
  if (epsilon < 0) return -std::expm1(epsilon) + std::exp(epsilon) * ZcdpDelta(rho, -epsilon, more);
  double& m = *more;
  constexpr int kMostSteps = 100;
  for (int i = 0; i < kMostSteps; ++i) {
    const double off = rho * (1 + 2 * m) - epsilon - std::log1p(1 / m);
    const double next = m - off / (2 * rho + 1 / (m * (1 + m)));
    const double last = std::exchange(m, next > 0 ? next : m / 16);
    if (std::abs(m - last) <= 1e-9 * m) break;
  }
  const double log_delta =
      m * ((1 + m) * rho - epsilon) - std::log(m) - (1 + m) * std::log1p(1 / m);
  return std::min(1.0, std::exp(log_delta));
}

}  // namespace

Grid MakeGrid(const LossLaw& law, double step, int64_t spacing, double centre, double tail,
              double cells_per_scale) {
  Grid grid{step, {}};
  const auto middle = static_cast<int64_t>(std::round(centre / step));
  // One empty cell at either end gives an atom there a point on both sides.
  const double lowest = law.Lowest(tail) / step - 1e-3;
  const double highest = law.Highest(tail) / step + 1e-3;
  const CellLength length(law, step, spacing, cells_per_scale);
  int64_t ordinal = 0;
  std::vector<int64_t> below;
  for (int64_t i = middle;;) {
    i -= length.At(i, middle - i, ordinal++);
    below.push_back(i);
    if (static_cast<double>(i) < lowest) break;
  }
  grid.index.assign(below.rbegin(), below.rend());
  grid.index.push_back(middle);
  for (int64_t i = middle;;) {
    i += length.At(i, i - middle, ordinal++);
    grid.index.push_back(i);
    if (static_cast<double>(i) > highest) break;
  }
  if (law.Atom() > 0)
    for (double atom : {-law.Atom(), law.Atom()})
      for (int64_t side : {-1, 0, 1}) grid.index.push_back(std::llround(atom / step) + side);
  std::sort(grid.index.begin(), grid.index.end());
  grid.index.erase(std::unique(grid.index.begin(), grid.index.end()), grid.index.end());
  return grid;
}

namespace {

std::vector<Halves> HalvesOf(const LossLaw& law, const Grid& grid) {
  std::vector<Halves> cells(grid.index.size() - 1);
  for (size_t j = 0; j < cells.size(); ++j) {
    const double low = grid.Loss(j), high = grid.Loss(j + 1), middle = (low + high) / 2;
    cells[j].left = law.Over(low, middle, low);
    cells[j].right = law.Over(middle, high, high);
  }
  return cells;
}

}  // namespace

bool IsWhole(const LatticeLaw& upper) {
  constexpr double kRounding = 1e-9;
  double all = upper.infinite_mass;
  for (const double mass : upper.mass) {
    if (!(mass >= 0)) return false;
    all += mass;
  }
  return upper.infinite_mass >= 0 && all >= 1 - kRounding;
}

LatticeLaws Discretise(const LossLaw& law, const Grid& grid, bool with_lower) {
  std::vector<Halves> cells = HalvesOf(law, grid);
  LatticeLaws laws{UpperLaw(law, grid, cells), {}};
  if (!with_lower) return laws;
  const LossLaw& below = law.Below();
  if (&below != &law) cells = HalvesOf(below, grid);
  laws.lower = LowerLaw(below, grid, cells);
  return laws;
}

LatticeLaws DiscretiseZcdp(double rho, const Grid& grid) {
  // Corners of the lower convex hull of (e^l_j, delta(l_j)), by Andrew's monotone chain.
  std::vector<size_t> corners;
  std::vector<double> value(grid.index.size());
  double more = 1;
  const auto slope = [&](size_t a, size_t b) {  // times e^loss(a)
    return (value[b] - value[a]) / std::expm1(grid.Loss(b) - grid.Loss(a));
  };
  for (size_t j = 0; j < value.size(); ++j) {
    value[j] = ZcdpDelta(rho, grid.Loss(j), &more);
    while (corners.size() > 1) {
      const size_t a = corners[corners.size() - 2], b = corners.back();
      if (slope(a, b) * std::exp(grid.Loss(b) - grid.Loss(a)) < slope(b, j)) break;
      corners.pop_back();
    }
    corners.push_back(j);
  }
  // A corner's mass is e^loss times the change of slope; left of the first the slope is -1.
  LatticeLaw upper;
  for (size_t i = 0; i < corners.size(); ++i) {
    const size_t j = corners[i];
    const double before =
        i == 0 ? -std::exp(grid.Loss(j))
               : slope(corners[i - 1], j) * std::exp(grid.Loss(j) - grid.Loss(corners[i - 1]));
    const double after = i + 1 < corners.size() ? slope(j, corners[i + 1]) : 0;
    upper.index.push_back(grid.index[j]);
    upper.mass.push_back(std::max(0.0, after - before));
  }
  upper.infinite_mass = value.back();
  const auto gaussian = MakeLossLaw(Event::Zcdp(rho), Direction::kRemove);
  return {std::move(upper), Discretise(*gaussian, grid).lower};
}

}  // namespace tacit::privacy::pld
