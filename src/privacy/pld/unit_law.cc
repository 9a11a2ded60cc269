#include "privacy/pld/unit_law.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "privacy/infinity.h"

namespace tacit::privacy::pld {
namespace {

// The value with `tail` of mass below it, or, weighted, above it.
double LowEnd(const Lognormal& u, double tail) { return u.At(-std::sqrt(2 * std::log(1 / tail))); }
double HighEnd(const Lognormal& u, double tail) {
  return u.At(std::sqrt(2 * std::log(1 / tail)) + u.s());
}

// The mass above the last end: one atom, at that end or at its mean.
void AddTop(const Lognormal& u, double end, Bound bound, UnitAtoms* unit) {
  const double mass = u.Above(end), weighted = u.WeightedAbove(end);
  if (!(mass > 0)) return;
  Atoms& atoms = unit->atoms;
  if (bound == Bound::kUpper) {
    atoms.mass.back() += mass;
    unit->capped = std::max(0.0, weighted - end * mass);
  } else {
    atoms.value.push_back(weighted / mass);
    atoms.mass.push_back(mass);
  }
}

// Collects U over cells whose ends are given.
UnitAtoms Collect(const Lognormal& u, const std::vector<double>& ends, Bound bound) {
  UnitAtoms unit;
  Atoms& atoms = unit.atoms;
  double carried = 0;
  for (size_t k = 0; k + 1 < ends.size(); ++k) {
    const Lognormal::Part part = u.Over(ends[k], ends[k + 1]);
    if (bound == Bound::kUpper) {
      const double up = part.beyond / (ends[k + 1] - ends[k]);
      atoms.value.push_back(ends[k]);
      atoms.mass.push_back(carried + std::max(0.0, part.mass - up));
      carried = up;
    } else if (part.mass > 0) {
      atoms.value.push_back(ends[k] + part.beyond / part.mass);
      atoms.mass.push_back(part.mass);
    }
  }
  if (bound == Bound::kUpper) {
    atoms.value.push_back(ends.back());
    atoms.mass.push_back(carried);
  }
  AddTop(u, ends.back(), bound, &unit);
  return unit;
}

std::vector<double> CellEnds(double low, double high, int bits) {
  std::vector<double> ends{low};
  while (ends.back() < high) {
    const double floor = Cells::Floor(ends.back(), bits);
    int exponent = 0;
    std::frexp(floor, &exponent);
    ends.push_back(floor + std::ldexp(1.0, exponent - 1 - bits));
  }
  return ends;
}

}  // namespace

UnitAtoms CutUnit(const Lognormal& u, double tail, int bits, Bound bound) {
  const double low = Cells::Floor(LowEnd(u, tail), bits);
  UnitAtoms unit = Collect(u, CellEnds(low, HighEnd(u, tail), bits), bound);
  const Lognormal::Part below = u.Over(0, low);
  Atoms& atoms = unit.atoms;
  if (bound == Bound::kUpper) {
    atoms.at_zero = below.short_of / low;
    atoms.mass.front() += below.beyond / low;
  } else if (below.mass > 0) {
    atoms.value.insert(atoms.value.begin(), below.beyond / below.mass);
    atoms.mass.insert(atoms.mass.begin(), below.mass);
  }
  return unit;
}

UnitAtoms CutUnitAbove(const Lognormal& u, double from, double tail, int bits, Bound bound) {
  return Collect(u, CellEnds(from, std::max(HighEnd(u, tail), from * 1.01), bits), bound);
}

namespace {

// One half of a cell: its mass, and E of the distance to the lattice point that it touches.
struct HalfCell {
  double mass = 0, distance = 0;
};

// The lower law's masses from the upper one's and the halves; see the header.
class LowerLattice {
 public:
  LowerLattice(double step, const std::vector<HalfCell>& left, const std::vector<HalfCell>& right)
      : step_(step), left_(left), right_(right), cells_(left.size()) {
    CollectBelow();
    CollectAbove();
  }

  // Returns the masses, or nothing if no lattice so coarse has a lower law.
  std::vector<double> Masses(const std::vector<double>& upper) {
    for (; begin_ < end_; ++begin_, --end_) {
      std::vector<double> mass = Attempt(upper);
      if (!mass.empty()) return mass;
    }
    return {};
  }

 private:
  // E[j - U; U <= j] for each lattice point j, and the least point that may collect all below: the
  // mean of what lies below the middle of the cell above must not exceed it.
  void CollectBelow() {
    below_.assign(cells_ + 1, 0);
    double mass = 0;
    for (size_t j = 0; j < cells_; ++j) {
      const double whole = left_[j].mass + right_[j].mass;
      below_[j + 1] =
          below_[j] + step_ * mass + right_[j].distance + step_ * left_[j].mass - left_[j].distance;
      mass += whole;
    }
    begin_ = 0;
    while (begin_ < cells_ && below_[begin_] < left_[begin_].distance) ++begin_;
    begin_ = std::max<size_t>(begin_, 1);
  }
  void CollectAbove() {
    above_.assign(cells_ + 1, 0);
    double mass = 0;
    for (size_t j = cells_; j-- > 0;) {
      above_[j] = above_[j + 1] + step_ * mass + left_[j].distance + step_ * right_[j].mass -
                  right_[j].distance;
      mass += left_[j].mass + right_[j].mass;
    }
    end_ = cells_;
    while (end_ > 0 && above_[end_] < right_[end_ - 1].distance) --end_;
    end_ = std::min(end_, cells_ - 1);
  }

  double Lowered(size_t j) const {
    double most = 0;
    if (j <= begin_) most = std::max(most, below_[j]);
    if (j >= end_) most = std::max(most, above_[j]);
    if (j >= begin_ && j < end_) most = std::max(most, left_[j].distance);
    if (j > begin_ && j <= end_) most = std::max(most, right_[j - 1].distance);
    return most;
  }

  std::vector<double> Attempt(const std::vector<double>& upper) const {
    std::vector<double> mass(cells_ + 1, 0);
    double before = Lowered(begin_ - 1), here = Lowered(begin_);
    for (size_t j = begin_; j <= end_; ++j) {
      const double next = j < cells_ ? Lowered(j + 1) : 0;
      mass[j] = upper[j] - ((next - here) - (here - before)) / step_;
      before = here;
      here = next;
    }
    return LeaveOut(mass) ? mass : std::vector<double>();
  }

  // Leaves out corners of negative mass: each goes to its two neighbours, mean kept. False if an
  // end is left with less than none.
  bool LeaveOut(std::vector<double>& mass) const {
    std::vector<size_t> kept{begin_};
    for (size_t j = begin_ + 1; j <= end_; ++j) {
      while (mass[kept.back()] < 0 && kept.size() > 1) {
        const size_t out = kept.back();
        kept.pop_back();
        const size_t before = kept.back();
        const double share = static_cast<double>(out - before) / static_cast<double>(j - before);
        mass[j] += mass[out] * share;
        mass[before] += mass[out] * (1 - share);
        mass[out] = 0;
      }
      if (mass[kept.back()] < 0) return false;
      kept.push_back(j);
    }
    return mass[kept.back()] >= 0;
  }

  double step_;
  const std::vector<HalfCell>& left_;
  const std::vector<HalfCell>& right_;
  size_t cells_, begin_ = 0, end_ = 0;
  std::vector<double> below_, above_;
};

}  // namespace

UnitLattices PutUnitOnLattice(const Lognormal& u, double step, int64_t first, int64_t last,
                              bool with_lower) {
  TACIT_CHECK(first >= 0 && last - first >= 4);
  const auto cells = static_cast<size_t>(last - first);
  std::vector<HalfCell> left(cells), right(cells);
  std::vector<double> upper(cells + 1, 0);
  for (size_t j = 0; j < cells; ++j) {
    const double low = static_cast<double>(first + static_cast<int64_t>(j)) * step;
    const Lognormal::Part near = u.Over(low, low + step / 2);
    const Lognormal::Part far = u.Over(low + step / 2, low + step);
    left[j] = {near.mass, near.beyond};
    right[j] = {far.mass, far.short_of};
    const double up = (near.beyond + std::max(0.0, step * far.mass - far.short_of)) / step;
    upper[j + 1] += up;
    upper[j] += std::max(0.0, near.mass - near.beyond / step) + far.short_of / step;
  }
  UnitLattices lattices;
  if (with_lower) lattices.lower = {step, first, LowerLattice(step, left, right).Masses(upper)};
  lattices.upper = {step, first, std::move(upper)};
  return lattices;
}

}  // namespace tacit::privacy::pld
