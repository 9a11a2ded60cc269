#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "privacy/pld/allocated_ratio.h"
#include "privacy/pld/lattice_sum.h"
#include "privacy/pld/lognormal.h"
#include "privacy/pld/loss_law.h"
#include "privacy/pld/unit_law.h"

// The parts of an allocation's law, and what each fault would do.
namespace tacit::privacy::pld {
namespace {

double Call(const Atoms& atoms, double above) {
  double sum = 0;
  for (size_t i = 0; i < atoms.value.size(); ++i)
    sum += atoms.mass[i] * std::max(0.0, atoms.value[i] - above);
  return sum;
}
double Put(const Atoms& atoms, double below) {
  double sum = atoms.at_zero * below;
  for (size_t i = 0; i < atoms.value.size(); ++i)
    sum += atoms.mass[i] * std::max(0.0, below - atoms.value[i]);
  return sum;
}

Atoms AtomsOf(const UnitLattice& lattice) {
  Atoms atoms;
  for (size_t i = 0; i < lattice.mass.size(); ++i) {
    const double value =
        static_cast<double>(lattice.first + static_cast<int64_t>(i)) * lattice.step;
    if (value == 0) {
      atoms.at_zero = lattice.mass[i];
      continue;
    }
    atoms.value.push_back(value);
    atoms.mass.push_back(lattice.mass[i]);
  }
  return atoms;
}

// The sum of two by all pairs, nothing rounded to cells.
Atoms Twice(const Atoms& a) {
  Atoms sum;
  for (size_t i = 0; i < a.value.size(); ++i)
    for (size_t j = 0; j < a.value.size(); ++j) {
      sum.value.push_back(a.value[i] + a.value[j]);
      sum.mass.push_back(a.mass[i] * a.mass[j]);
    }
  return sum;
}

TEST(UnitLaw, StandsOnEitherSideOfTheLognormal) {
  for (double s : {0.3, 1.0, 2.0}) {
    const Lognormal u(s);
    for (const Bound bound : {Bound::kUpper, Bound::kLower}) {
      const UnitAtoms unit = CutUnit(u, 1e-14, 5, bound);
      EXPECT_NEAR(unit.atoms.Mass(), 1, 1e-12);
      EXPECT_NEAR(unit.atoms.Mean() + unit.capped, 1, 1e-12);
      for (double at = 0.05; at < 20; at *= 1.07) {
        const double call = u.WeightedAbove(at) - at * u.Above(at), put = call - 1 + at;
        const double sign = bound == Bound::kUpper ? 1 : -1;
        EXPECT_GE(sign * (Call(unit.atoms, at) + unit.capped - call), -1e-13) << s << " " << at;
        EXPECT_GE(sign * (Put(unit.atoms, at) - put), -1e-13) << s << " " << at;
      }
    }
  }
}

TEST(UnitLaw, StandsOnEitherSideOnALattice) {
  for (double s : {0.3, 1.0, 1.3})
    for (double step : {0.01, 0.05, 0.2}) {
      const Lognormal u(s);
      const auto last = static_cast<int64_t>(u.At(7 + s) / step) + 1;
      const UnitLattices laws = PutUnitOnLattice(u, step, 0, last, true);
      const Atoms upper = AtomsOf(laws.upper), lower = AtomsOf(laws.lower);
      EXPECT_NEAR(upper.Mean(), 1, 1e-9);
      EXPECT_NEAR(lower.Mean(), 1, 1e-9);
      for (const double mass : laws.lower.mass) EXPECT_GE(mass, 0);
      for (double at = step / 3; at < 30; at *= 1.05) {
        const double call = u.WeightedAbove(at) - at * u.Above(at);
        EXPECT_GE(Call(upper, at), call - 1e-9) << s << " " << step << " " << at;
        EXPECT_LE(Call(lower, at), call + 1e-13) << s << " " << step << " " << at;
      }
    }
}

TEST(Cells, BoundSumsFromBothSides) {
  const Atoms unit = CutUnit(Lognormal(1), 1e-10, 4, Bound::kLower).atoms;
  const Atoms exact = Twice(unit);
  for (int bits : {1, 3, 6}) {
    const Atoms upper = SumOf(unit, unit, bits, Bound::kUpper);
    const Atoms lower = SumOf(unit, unit, bits, Bound::kLower);
    EXPECT_NEAR(upper.Mean(), exact.Mean(), 1e-12);
    EXPECT_NEAR(lower.Mean(), exact.Mean(), 1e-12);
    for (double at = 0.1; at < 40; at *= 1.1) {
      EXPECT_GE(Call(upper, at), Call(exact, at) - 1e-13) << bits << " " << at;
      EXPECT_LE(Call(lower, at), Call(exact, at) + 1e-13) << bits << " " << at;
    }
  }
}

// One summand alone is 1, both are 2, and cells are a part in 2^40: those in between would be 1e12.
TEST(Cells, OfValuesFarApartAreAroundThemAlone) {
  const Atoms unit{.at_zero = 1e-6, .value = {1, 1 + 0x1p-30}, .mass = {0.5, 0.5}};
  for (const Bound bound : {Bound::kUpper, Bound::kLower}) {
    const Atoms sum = SumOf(unit, unit, 40, bound);
    EXPECT_DOUBLE_EQ(sum.at_zero, 1e-12);
    EXPECT_TRUE(std::ranges::is_sorted(sum.value, std::ranges::less_equal()));
    EXPECT_NEAR(sum.Mass(), (1 + 1e-6) * (1 + 1e-6), 1e-12);
    EXPECT_NEAR(sum.Mean(), 2 * unit.Mean() * (1 + 1e-6), 1e-12);
    EXPECT_NEAR(Put(sum, 1.5), 1e-12 * 1.5 + 2e-6 * (0.5 - 0x1p-31), 1e-15);
  }
}

// Fault: a spread that loses mean, all of a cell's mass to its lower end. It is seen below the
// truth.
TEST(Cells, ASpreadThatLosesMeanFallsBelowTheTruth) {
  Atoms unit = CutUnit(Lognormal(1), 1e-10, 4, Bound::kLower).atoms;
  const Atoms exact = Twice(unit);
  for (double& value : unit.value) value = Cells::Floor(value, 4);
  const Atoms wrong = SumOf(unit, unit, 12, Bound::kUpper);
  EXPECT_LT(Call(wrong, 4), 0.99 * Call(exact, 4));
  EXPECT_LT(wrong.Mean(), exact.Mean() - 0.01);
}

// Fault: a tail that is cut and not paid for.
TEST(Cells, ATrimmedTailIsPaidFor) {
  const Atoms whole = CutUnit(Lognormal(1), 1e-12, 5, Bound::kLower).atoms;
  Atoms cut = whole;
  const double paid = Trim(cut, 1e-3, Bound::kUpper);
  bool seen = false;
  for (double at = 0.01; at < 100; at *= 1.1) {
    EXPECT_GE(Call(cut, at) + paid, Call(whole, at) - 1e-15) << at;
    EXPECT_GE(Put(cut, at), Put(whole, at) - 1e-15) << at;
    seen |= Call(cut, at) < Call(whole, at) * (1 - 1e-3);
  }
  EXPECT_TRUE(seen) << "unpaid, the cut would show";
  Atoms lower = whole;
  EXPECT_EQ(Trim(lower, 1e-3, Bound::kLower), 0);
  EXPECT_NEAR(lower.Mean(), whole.Mean(), 1e-14);
  for (double at = 0.01; at < 100; at *= 1.1) EXPECT_LE(Call(lower, at), Call(whole, at) + 1e-15);
}

// Fault: wrapping. A tail so large that the window is far too short wraps what is beyond: the
// bounds must hold still, since what wraps is in each error and what is beyond is paid for.
TEST(LatticeSum, PaysForAWindowThatIsTooShort) {
  const Lognormal u(1);
  const UnitLattices laws = PutUnitOnLattice(u, 0.05, 0, 200, true);
  const Atoms unit = AtomsOf(laws.upper);
  const LatticeSum fine(laws.upper, {7, 8, 1e-20, true});
  const LatticeSum shorter(laws.upper, {7, 8, 1e-2, true});
  const auto exact = fine.Of(8, Bound::kUpper), wrapped = shorter.Of(8, Bound::kUpper);
  ASSERT_LT(wrapped.atoms.value.back(), exact.atoms.value.back());
  EXPECT_GT(wrapped.above, 1e-6);
  const auto lower = shorter.Of(8, Bound::kLower);
  bool seen = false;
  for (double at = 8; at < 60; at *= 1.05) {
    const double truth = Call(exact.atoms, at);
    EXPECT_GE(Call(wrapped.atoms, at) + wrapped.above, truth * (1 - 1e-9)) << at;
    EXPECT_LE(Call(lower.atoms, at), truth * (1 + 1e-9)) << at;
    seen |= Call(wrapped.atoms, at) < truth * (1 - 1e-3);
  }
  EXPECT_TRUE(seen) << "unpaid, what wrapped would show";
}

TEST(LatticeSum, IsTheSumByPairs) {
  const UnitLattices laws = PutUnitOnLattice(Lognormal(1), 0.05, 0, 200, true);
  Atoms unit = AtomsOf(laws.lower);
  ASSERT_EQ(unit.at_zero, 0);
  const Atoms exact = Twice(unit);
  const LatticeSum sums(laws.lower, {2, 2, 1e-18, true});
  const auto upper = sums.Of(2, Bound::kUpper), lower = sums.Of(2, Bound::kLower);
  for (double at = 0.3; at < 19; at *= 1.1) {
    EXPECT_GE(Call(upper.atoms, at), Call(exact, at) * (1 - 1e-11)) << at;
    EXPECT_LE(Call(lower.atoms, at), Call(exact, at) * (1 + 1e-11)) << at;
    EXPECT_LE(Call(upper.atoms, at) - Call(lower.atoms, at), 1e-6 * Call(exact, at) + 1e-7) << at;
  }
}

double DeltaRemoved(const RatioLaw& law, double epsilon) {
  return law.infinite_if_removed + Call(law.atoms, std::exp(epsilon));
}

// The two ways share nothing but the cells: each one's bounds must leave room for the other's.
// An atom's gain against a reference within a length h of it is a share of its mass, of at most h
// or so. At a loss of 37 the quick formula, which multiplies by e^37, has no digit of that left.
TEST(AllocationLaw, KnowsGainsAtLargeLosses) {
  for (const double sigma : {0.2, 0.3, 1.0, 5.0})
    for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
      const auto law = MakeLossLaw(Event::Allocation(sigma, 4), direction);
      const double first = law->Lowest(1e-12), last = law->Highest(1e-12);
      const double h = (last - first) / 60;
      for (double low = first; low < last; low += h) {
        const IntervalMass from_low = law->Over(low, low + h, low),
                           from_high = law->Over(low, low + h, low + h);
        const double wrong = 1e-8 * from_low.mass * h + 1e-300;
        EXPECT_GE(from_low.gain, -wrong) << sigma << " " << low;
        EXPECT_LE(from_low.gain, -std::expm1(-h) * from_low.mass + wrong) << sigma << " " << low;
        EXPECT_LE(from_high.gain, wrong) << sigma << " " << low;
        EXPECT_GE(from_high.gain, -std::expm1(h) * from_high.mass - wrong) << sigma << " " << low;
      }
    }
}

TEST(AllocatedRatio, IsTheSameByDoublingAndByTransform) {
  for (const RatioRequest& request :
       {RatioRequest{0.7, 20, 1e-18}, RatioRequest{1, 9, 1e-12}, RatioRequest{1, 60, 1e-18},
        RatioRequest{4, 33, 1e-18}, RatioRequest{1, 5, 1e-10}, RatioRequest{1, 6, 1e-12},
        RatioRequest{1.5, 6, 1e-12}, RatioRequest{2, 5, 1e-10}, RatioRequest{2, 7, 1e-12},
        RatioRequest{4, 5, 1e-12}}) {
    const double sigma = request.noise_multiplier;
    const AllocatedRatio slow = RatioByDoubling(request);
    const auto fast = RatioByTransform(request);
    ASSERT_TRUE(fast) << sigma << " " << request.steps;
    for (double epsilon = 0; epsilon < 8 / sigma; epsilon += 0.25 / sigma) {
      if (DeltaRemoved(slow.upper, epsilon) < 1e4 * request.tail) break;
      EXPECT_LE(DeltaRemoved(slow.lower, epsilon), DeltaRemoved(fast->upper, epsilon)) << epsilon;
      EXPECT_LE(DeltaRemoved(fast->lower, epsilon), DeltaRemoved(slow.upper, epsilon)) << epsilon;
      EXPECT_LE(DeltaRemoved(fast->upper, epsilon), 1.01 * DeltaRemoved(slow.lower, epsilon));
    }
  }
}

// Mass at 0 is an infinite loss where a unit is added: no delta is below it.
TEST(AllocatedRatio, HasNoMassAtZeroThatIsMoreThanItsTail) {
  for (const double sigma : {0.5, 0.8, 1.0, 3.0})
    for (const int64_t steps : {2, 5, 10, 19, 20, 40, 300})
      for (const double tail : {1e-12, 1e-18, kLeastTail}) {
        const AllocatedRatio ratio = MakeAllocatedRatio({sigma, steps, tail});
        EXPECT_LE(ratio.upper.atoms.at_zero + ratio.upper.infinite_if_added, 1e4 * tail)
            << sigma << " " << steps << " " << tail;
        EXPECT_LE(ratio.upper.infinite_if_removed, 1e4 * tail) << sigma << " " << steps;
      }
}

}  // namespace
}  // namespace tacit::privacy::pld
