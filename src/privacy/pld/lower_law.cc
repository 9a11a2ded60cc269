#include "privacy/pld/lower_law.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace tacit::privacy::pld {
namespace {

// A gain below this share of the mass counts as none; the bounds allow for such a shift of a loss.
constexpr double kNoGain = 1e-14;
// Share of an interval's mass beyond its point that is enough to keep the point.
constexpr double kCrowd = 0.02;
// Mass at the bottom that needs no points of its own: it decides no delta.
constexpr double kThinTail = 1e-5;
// kSettled intervals at either end are examined, and one may absorb kAbsorbed others. The outermost
// may absorb any number if it lies beyond 0: its gain then changes sign before the other end.
constexpr size_t kSettled = 12;
constexpr int kAbsorbed = 3;

// An interval of losses that becomes the mass of one grid point.
struct Merged {
  size_t point = 0;  // in the grid
  double low = 0, high = 0;
  IntervalMass held;  // gain against the point
};

// Builds the lower law of a grid; see the header. Intervals end in the middle of cells, except at
// the ends of the law, where much mass may lie within less than a cell.
class LowerLawBuilder {
 public:
  LowerLawBuilder(const LossLaw& law, const Grid& grid, const std::vector<Halves>& cells)
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
      RelieveRising();
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

  // Values of the point's two tangents at the point, above the corner: to its right and left. They
  // differ by the gain.
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
  // Mass taken from the next and the previous point to move the corner onto the lattice.
  double FromNext(size_t i) const {
    return i + 1 < intervals_.size() ? AboveRight(i) / -std::expm1(-Gap(i)) : 0;
  }
  double FromPrevious(size_t i) const { return i > 0 ? AboveLeft(i) / std::expm1(Gap(i - 1)) : 0; }
  // The most that each neighbour may take.
  double Lendable(size_t i) const {
    return 0.49 * (intervals_[i].held.mass - std::max(0.0, intervals_[i].held.gain));
  }

  // Handles a law that ends in atoms: each becomes an interval of its own, at the last point not
  // above it.
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

  // Settles the bottom. The lowest interval must not lie above its point, as nothing below can
  // lower it. From there on no interval may need more from the next than that can lend, as happens
  // where mass crowds at an end of the law. Moves borders until both hold.
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
        const std::vector<Merged> before(intervals_.begin(), intervals_.begin() + 2);
        Divide(0, 0);
        if (FromPrevious(1) <= Lendable(0)) break;
        std::copy(before.begin(), before.end(), intervals_.begin());
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

  // Settles the top, mirrored: the highest interval must not lie below its point, and none may need
  // more from the one before. Mass above the grid stays out.
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

  // Relieves steeply rising masses. A point that needs more than the one below can lend absorbs
  // that one's interval: a longer cell is better than a rounded one.
  void RelieveRising() {
    for (size_t i = 1; i + 1 < intervals_.size();) {
      if (FromPrevious(i) <= Lendable(i - 1) ||
          intervals_[i - 1].held.mass > intervals_[i].held.mass) {
        ++i;
        continue;
      }
      intervals_[i].low = intervals_[i - 1].low;
      Measure(intervals_[i]);
      intervals_.erase(intervals_.begin() + static_cast<std::ptrdiff_t>(i) - 1);
      if (i > 1) --i;
    }
  }

  // Moves the border of intervals `lower` and `lower + 1` so that the gain of `settled`, one of the
  // two, is almost zero on the side where the other can help. The gain grows with the border in
  // either case.
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

  // Limits shares. If a point's neighbours have too little to lend, only a share of its interval is
  // treated this way; the rest goes to the grid point below the interval. That is a lower law too,
  // but of first order only. Shares only fall, and settle after a few sweeps in both directions.
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

}  // namespace

LatticeLaw LowerLaw(const LossLaw& law, const Grid& grid, const std::vector<Halves>& cells) {
  return LowerLawBuilder(law, grid, cells).Build();
}

}  // namespace tacit::privacy::pld
