#include "privacy/pld/lattice_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tacit::privacy::pld {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// What covers the error of an IntervalMass's gain: this share of a cell's mass is moved to the safe
// side.
constexpr double kNudge = 1e-7;

// How long a cell at lattice index i is: `spacing`, longer far from the middle, shorter in the
// crowd between 0 and an edge of the law.
class CellLength {
 public:
  CellLength(const LossLaw& law, double step, int64_t spacing, double cells_per_scale)
      : spacing_(spacing), cells_per_scale_(cells_per_scale), edge_(law.Edge() / step) {}

  // The length of the `ordinal`-th cell from the middle. Lengths vary by the golden ratio's
  // multiples: equal ones would make the law's transform return to 1 at a multiple of the lowest
  // frequency, and the whole series would have to be summed.
  int64_t At(int64_t i, int64_t distance, int64_t ordinal) const {
    double cell =
        std::max(static_cast<double>(spacing_), static_cast<double>(distance) / cells_per_scale_);
    // Towards the crowd cells shrink step by step: much mass in a long cell next to a short one
    // could not be brought onto the short one's points.
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

// A gain below this share of the mass is none; the shift of a loss by as little is in the bounds.
constexpr double kNoGain = 1e-14;
// Of an interval's mass beyond its point: enough to keep the point.
constexpr double kCrowd = 0.02;
// Mass at the bottom that is not worth its own points: it decides no delta.
constexpr double kThinTail = 1e-5;
// How many intervals at either end are looked at, and may be swallowed by one; the outermost may
// swallow any number if it lies beyond 0, for then its gain does change sign before the other end.
constexpr size_t kSettled = 12;
constexpr int kAbsorbed = 3;

// What one cell's two halves hold; gains are taken against the cell's end that the half touches.
struct Halves {
  IntervalMass left, right;
};

// An interval of losses that becomes the mass of one grid point.
struct Merged {
  size_t point = 0;  // in the grid
  double low = 0, high = 0;
  IntervalMass held;  // gain against the point
};

// The lower law of a grid; see the header. Intervals end in the middle of cells, save at the ends
// of the law, where much mass may lie within less than a cell.
class LowerLaw {
 public:
  LowerLaw(const LossLaw& law, const Grid& grid, const std::vector<Halves>& cells)
      : law_(law), grid_(grid) {
    for (size_t j = 0; j < grid.index.size(); ++j) {
      Merged merged{j, Middle(j, -1), Middle(j, +1), {}};
      if (j > 0) Absorb(merged.held, cells[j - 1].right);
      if (j < cells.size()) Absorb(merged.held, cells[j].left);
      if (merged.held.mass > 0) intervals_.push_back(merged);
    }
    if (law.Atom() > 0) {
      KeepAtomsApart();
    } else {
      SettleBottom();
      SettleTop();
    }
  }

  LatticeLaw Build() {
    LimitShares();
    std::vector<double> mass(grid_.index.size(), 0);
    for (size_t i = 0; i < intervals_.size(); ++i) Place(i, mass);
    LatticeLaw law;
    for (size_t j = 0; j < mass.size(); ++j) {
      TACIT_CHECK(mass[j] > -1e-12, "a point lent more than it has");
      if (!(mass[j] > 0)) continue;
      law.index.push_back(grid_.index[j]);
      law.mass.push_back(mass[j]);
    }
    return law;
  }

 private:
  static void Absorb(IntervalMass& into, const IntervalMass& other) {
    into.mass += other.mass;
    into.gain += other.gain;
  }

  double Middle(size_t j, int side) const {
    if (side < 0) return j == 0 ? grid_.Loss(0) : (grid_.Loss(j - 1) + grid_.Loss(j)) / 2;
    return j + 1 == grid_.index.size() ? grid_.Loss(j) : (grid_.Loss(j) + grid_.Loss(j + 1)) / 2;
  }

  double Length(size_t a, size_t b) const { return grid_.Loss(b) - grid_.Loss(a); }
  double PointLoss(size_t i) const { return grid_.Loss(intervals_[i].point); }
  double Gap(size_t i) const { return Length(intervals_[i].point, intervals_[i + 1].point); }
  void Measure(Merged& merged) const {
    merged.held = law_.Over(merged.low, merged.high, grid_.Loss(merged.point));
  }

  // The value that the point's two tangents have there, above the corner: to its right and left.
  // They differ by the gain.
  double Slack(size_t i) const {
    const double right = i + 1 < intervals_.size() ? Gap(i) : 0;
    const double left = i > 0 ? Gap(i - 1) : 0;
    return kNudge * intervals_[i].held.mass * std::min(std::max(left, right), 1.0);
  }
  double AboveRight(size_t i) const {
    if (i + 1 == intervals_.size()) return 0;
    return std::max(0.0, -intervals_[i].held.gain) + Slack(i);
  }
  double AboveLeft(size_t i) const {
    if (i + 1 == intervals_.size()) return std::max(0.0, intervals_[i].held.gain);
    return std::max(0.0, intervals_[i].held.gain) + Slack(i);
  }
  // Mass taken from the next and the previous point to bring the corner onto the lattice.
  double FromNext(size_t i) const {
    return i + 1 < intervals_.size() ? AboveRight(i) / -std::expm1(-Gap(i)) : 0;
  }
  double FromPrevious(size_t i) const { return i > 0 ? AboveLeft(i) / std::expm1(Gap(i - 1)) : 0; }
  // What each neighbour may take at most.
  double Lendable(size_t i) const {
    return 0.49 * (intervals_[i].held.mass - std::max(0.0, intervals_[i].held.gain));
  }

  // A law that ends in atoms: each is an interval of its own, at the last point not above it.
  void KeepAtomsApart() {
    constexpr double kHair = 1e-12;
    const double atom = law_.Atom();
    const auto point_at = [&](double loss) {
      size_t j = grid_.index.size() - 1;
      while (j > 0 && grid_.Loss(j) > loss) --j;
      return j;
    };
    Merged bottom{point_at(-atom * (1 - kHair)), -atom * (1 + kHair), -atom * (1 - kHair), {}};
    Merged top{point_at(atom * (1 + kHair)), atom * (1 - kHair), atom * (1 + kHair), {}};
    Measure(bottom);
    Measure(top);
    std::vector<Merged> inner;
    for (const Merged& merged : intervals_)
      if (merged.point > bottom.point && merged.point < top.point) inner.push_back(merged);
    if (!inner.empty()) {
      inner.front().low = bottom.high;
      inner.back().high = top.low;
      Measure(inner.front());
      Measure(inner.back());
      std::erase_if(inner, [](const Merged& merged) { return !(merged.held.mass > 0); });
    }
    intervals_ = {bottom};
    intervals_.insert(intervals_.end(), inner.begin(), inner.end());
    intervals_.push_back(top);
  }

  // The lowest interval must not lie above its point, for there is nothing below to lower it with;
  // and from there on none may need more from the next than that can lend, as happens where mass
  // crowds at an end of the law. Borders are moved until neither is so.
  void SettleBottom() {
    const double bottom = intervals_[0].low;
    while (intervals_.size() > 2 && intervals_[0].held.mass + intervals_[1].held.mass < kThinTail) {
      intervals_[1].low = bottom;
      Measure(intervals_[1]);
      intervals_.erase(intervals_.begin());
    }
    while (intervals_.size() > 2 && intervals_[0].held.gain > kNoGain * intervals_[0].held.mass) {
      const IntervalMass below = law_.Over(bottom, PointLoss(0), PointLoss(0));
      if (below.mass > kCrowd * intervals_[0].held.mass) {
        Divide(0, 0);
        break;
      }
      intervals_[1].low = bottom;
      Measure(intervals_[1]);
      intervals_.erase(intervals_.begin());
    }
    for (size_t i = 0; i + 2 < intervals_.size() && i < kSettled; ++i)
      for (int absorbed = 0; (absorbed < kAbsorbed || (i == 0 && PointLoss(0) < 0)) &&
                             i + 2 < intervals_.size() && FromNext(i) > Lendable(i + 1);
           ++absorbed) {
        Merged grown = intervals_[i];
        grown.high = intervals_[i + 1].high;
        Measure(grown);
        if (grown.held.gain > 0) {
          Divide(i, i);
          break;
        }
        intervals_[i] = grown;
        intervals_.erase(intervals_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
  }

  // The same at the top, mirrored: the highest must not lie below its point, and none may need more
  // from the one before. What is above the grid stays left out.
  void SettleTop() {
    const double top = intervals_.back().high;
    while (intervals_.size() > 2 &&
           intervals_.back().held.gain < -kNoGain * intervals_.back().held.mass) {
      const size_t last = intervals_.size() - 1;
      const IntervalMass above = law_.Over(PointLoss(last), top, PointLoss(last));
      if (above.mass > kCrowd * intervals_[last].held.mass) {
        Divide(last - 1, last);
        break;
      }
      intervals_[last - 1].high = top;
      Measure(intervals_[last - 1]);
      intervals_.pop_back();
    }
    for (size_t back = 1; back + 2 < intervals_.size() && back <= kSettled; ++back)
      for (int absorbed = 0; back + 2 < intervals_.size(); ++absorbed) {
        const size_t i = intervals_.size() - back;
        if (FromPrevious(i) <= Lendable(i - 1)) break;
        if (absorbed >= kAbsorbed && !(back == 1 && PointLoss(i) > 0)) break;
        Merged grown = intervals_[i];
        grown.low = intervals_[i - 1].low;
        Measure(grown);
        if (grown.held.gain < 0) {
          Divide(i - 1, i);
          break;
        }
        intervals_[i] = grown;
        intervals_.erase(intervals_.begin() + static_cast<std::ptrdiff_t>(i) - 1);
      }
  }

  // Moves the border of intervals `lower` and `lower + 1` so that the gain of `settled`, one of the
  // two, is next to nothing on the side where the other can help: it grows with the border either
  // way.
  void Divide(size_t lower, size_t settled) {
    Merged& below = intervals_[lower];
    Merged& above = intervals_[lower + 1];
    const bool lower_settled = settled == lower;
    double low = below.low, high = above.high;
    for (int i = 0; i < 50; ++i) {
      const double border = (low + high) / 2;
      below.high = above.low = border;
      Measure(intervals_[settled]);
      const double slack = kNudge * intervals_[settled].held.mass * Gap(lower);
      const double gain = intervals_[settled].held.gain;
      (gain < (lower_settled ? -slack : slack) ? low : high) = border;
    }
    below.high = above.low = lower_settled ? low : high;
    Measure(below);
    Measure(above);
  }

  // Where a point's neighbours have too little to lend, only a share of the interval is treated so;
  // the rest goes to the grid point below the interval: a lower law too, of the first order only.
  // Shares only ever fall, and settle after a few sweeps in both directions.
  void LimitShares() {
    const size_t size = intervals_.size();
    share_.assign(size, 1);
    if (intervals_.back().held.gain < -kNoGain * intervals_.back().held.mass) share_.back() = 0;
    const auto limit = [&](size_t i) {
      double most = share_[i];
      if (i + 1 < size && most * FromNext(i) > share_[i + 1] * Lendable(i + 1))
        most = share_[i + 1] * Lendable(i + 1) / FromNext(i);
      if (i > 0 && most * FromPrevious(i) > share_[i - 1] * Lendable(i - 1))
        most = share_[i - 1] * Lendable(i - 1) / FromPrevious(i);
      const bool changed = most < share_[i] * (1 - 1e-6);
      share_[i] = most;
      return changed;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < size; ++i) changed |= limit(i);
      for (size_t i = size; i-- > 0;) changed |= limit(i);
    }
  }

  void Place(size_t i, std::vector<double>& mass) const {
    const Merged& merged = intervals_[i];
    const double share = share_[i];
    if (share < 1) {
      size_t below = merged.point;
      while (below > 0 && grid_.Loss(below) > merged.low) --below;
      if (grid_.Loss(below) <= merged.low) mass[below] += (1 - share) * merged.held.mass;
    }
    double own = merged.held.mass - merged.held.gain;
    if (i + 1 < intervals_.size()) {
      own += AboveRight(i) / std::expm1(Gap(i));
      mass[intervals_[i + 1].point] -= share * FromNext(i);
    }
    if (i > 0) {
      own += AboveLeft(i) / -std::expm1(-Gap(i - 1));
      mass[intervals_[i - 1].point] -= share * FromPrevious(i);
    }
    mass[merged.point] += share * own;
  }

  const LossLaw& law_;
  const Grid& grid_;
  std::vector<Merged> intervals_;
  std::vector<double> share_;
};

// Chords over the cells: a cell's mass goes to its two ends so that E[e^-L] stays.
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

// Bun and Steinke's delta for rho-zCDP as improved by Canonne, Kamath and Steinke, minimised over
// the order; below 0 the curve is its own mirror image, g(x) = 1 - x + x g(1/x).
double ZcdpDelta(double rho, double epsilon) {
  if (epsilon < 0) return -std::expm1(epsilon) + std::exp(epsilon) * ZcdpDelta(rho, -epsilon);
  const auto log_delta = [&](double log_more) {
    const double more = std::exp(log_more), order = 1 + more;
    return more * (order * rho - epsilon) - log_more + order * std::log1p(-1 / order);
  };
  // Around the classical optimum (epsilon - rho) / (2 rho) of order - 1/2.
  double low = -20, high = std::log(std::max(epsilon / rho, 1.0)) + 10;
  const double golden = 0.6180339887498949;
  while (high - low > 1e-9) {
    const double a = high - golden * (high - low), b = low + golden * (high - low);
    (log_delta(a) < log_delta(b) ? high : low) = log_delta(a) < log_delta(b) ? b : a;
  }
  return std::min(1.0, std::exp(log_delta(low)));
}

}  // namespace

Grid MakeGrid(const LossLaw& law, double step, int64_t spacing, double centre, double tail,
              double cells_per_scale) {
  Grid grid{step, {}};
  const auto middle = static_cast<int64_t>(std::round(centre / step));
  // One empty cell at either end, so that an atom there has a point on both sides.
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

LatticeLaws Discretise(const LossLaw& law, const Grid& grid) {
  std::vector<Halves> cells(grid.index.size() - 1);
  for (size_t j = 0; j < cells.size(); ++j) {
    const double low = grid.Loss(j), high = grid.Loss(j + 1), middle = (low + high) / 2;
    cells[j].left = law.Over(low, middle, low);
    cells[j].right = law.Over(middle, high, high);
  }
  return {UpperLaw(law, grid, cells), LowerLaw(law, grid, cells).Build()};
}

LatticeLaws DiscretiseZcdp(double rho, const Grid& grid) {
  // Corners of the lower convex hull of (e^l_j, delta(l_j)), by Andrew's monotone chain.
  std::vector<size_t> corners;
  std::vector<double> value(grid.index.size());
  const auto slope = [&](size_t a, size_t b) {  // times e^loss(a)
    return (value[b] - value[a]) / std::expm1(grid.Loss(b) - grid.Loss(a));
  };
  for (size_t j = 0; j < value.size(); ++j) {
    value[j] = ZcdpDelta(rho, grid.Loss(j));
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
