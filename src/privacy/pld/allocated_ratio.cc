#include "privacy/pld/allocated_ratio.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "privacy/pld/lattice_sum.h"
#include "privacy/pld/lognormal.h"
#include "privacy/pld/unit_law.h"

namespace tacit::privacy::pld {
namespace {

// Cells' lengths in standard deviations of what they hold, or of its logarithm.
constexpr double kDoublingShare = 0.014;
constexpr double kFinalShare = 0.01;
// The lower law's cells are longer: it shows how tight the upper one is, and no promise is by it.
constexpr double kLowerCoarser = 3;
constexpr double kLowerStepShares[] = {0.048, 0.016};
// Less noise than this leaves a lower law on a long step without its tail.
constexpr double kNoiseOfLongSteps = 0.75;
// Little noise makes epsilon large, and an error of it matters less.
constexpr double kCoarserOfLittleNoise = 1.5;
// The lattice's step in standard deviations of a small factor: the first that tells small sums from
// none.
constexpr double kStepShares[] = {0.03, 0.016};
// Mass of the upper law at 0, in tails, that says that a lattice does not.
constexpr double kUntold = 1e3;
// The number of large factors that is expected.
constexpr double kLarge = 0.01;
constexpr int kMostLarge = 24;
// Large factors are put in cells of this length, relatively; so are sums beside them.
constexpr double kLargeShare = 0.01;
constexpr int64_t kLongestLattice = 1 << 21;
// Steps from which the transform is tried: with deep tails it tells few small factors from none
// only on long lattices.
constexpr int64_t kFewSteps = 5, kFewStepsOfDeepTails = 20;
constexpr double kDeepTail = 1e-17;

// Covers every rounding that is not bounded where it happens: masses and values are exact to a few
// hundred units in the last place for each factor, and a shift of a value by one counts for as much
// as delta falls there.
double Allowance(const RatioRequest& request) {
  const auto t = static_cast<double>(request.steps);
  return 1e-9 + 4e-12 * t + 1e-14 * std::sqrt(t) * request.noise_multiplier;
}

// Turns a sum of t factors into their mean, rounding paid for.
RatioLaw Finish(Atoms sum, const RatioRequest& request, Bound bound) {
  const auto t = static_cast<double>(request.steps);
  const double allowance = Allowance(request);
  RatioLaw law;
  law.atoms = std::move(sum);
  const double scale = bound == Bound::kUpper ? 1 + allowance : 1 - allowance;
  for (double& mass : law.atoms.mass) mass *= scale;
  for (double& value : law.atoms.value) value /= t;
  law.atoms.at_zero *= scale;
  return law;
}

// The standard deviation of the mean of t factors, or 1 if that is less.
double Spread(const Lognormal& u, double t) { return std::min(1.0, u.deviation() / std::sqrt(t)); }

RatioLaw Double(const RatioRequest& request, Bound bound) {
  const Lognormal u(1 / request.noise_multiplier);
  const double tail = request.tail / static_cast<double>(request.steps);
  const int64_t t = request.steps;
  int top = 0, levels = 0;
  while ((t >> (top + 1)) > 0) ++top;
  for (int bit = top; bit-- > 0;) levels += 1 + static_cast<int>(t >> bit & 1);
  const double share = kDoublingShare * (bound == Bound::kLower ? kLowerCoarser : 1) *
                       (u.s() >= 1 ? kCoarserOfLittleNoise : 1) /
                       std::sqrt(std::max(1.0, (levels + 1) / 4.0));
  const auto bits = [&](double summands) { return Cells::BitsFor(share * Spread(u, summands)); };
  UnitAtoms unit = CutUnit(u, tail, bits(1), bound);
  double paid = unit.capped;
  Atoms sum = unit.atoms;
  int64_t summands = 1;
  const auto trim = [&] {
    paid += Trim(sum, tail * static_cast<double>(summands), bound) / static_cast<double>(summands);
  };
  for (int bit = top; bit-- > 0;) {
    summands *= 2;
    sum = SumOf(sum, sum, bits(static_cast<double>(summands)), bound);
    trim();
    if ((t >> bit & 1) == 0) continue;
    ++summands;
    sum = SumOf(sum, unit.atoms, bits(static_cast<double>(summands)), bound);
    trim();
  }
  RatioLaw law = Finish(std::move(sum), request, bound);
  law.infinite_if_removed = paid;
  return law;
}

// The way by transforms: factors up to a cut are small and on a lattice; few of the t are large.
// One bound.
class ByTransform {
 public:
  ByTransform(const RatioRequest& request, Bound bound, double step_share)
      : request_(request),
        bound_(bound),
        coarser_(bound == Bound::kLower ? kLowerCoarser : 1),
        step_share_(step_share),
        u_(1 / request.noise_multiplier),
        t_(static_cast<double>(request.steps)) {
    tail_ = request.tail / t_;
    reach_ = std::sqrt(2 * std::log(1 / tail_));
    ChooseCut();
    ChooseStep();
  }

  std::optional<RatioLaw> Make() const {
    if (!fits_) return std::nullopt;
    const UnitLattices lattices =
        PutUnitOnLattice(u_, step_, first_, last_, bound_ == Bound::kLower);
    if (bound_ == Bound::kUpper) return Make(lattices.upper);
    if (lattices.lower.mass.empty()) return std::nullopt;
    return Make(lattices.lower);
  }

 private:
  static constexpr int kLargeBits = 7;

  RatioLaw Make(const UnitLattice& small) const {
    const Bound bound = bound_;
    const int large_bits = kLargeBits - (coarser_ > 1 ? 1 : 0) - (u_.s() >= 1 ? 1 : 0);
    const LatticeSum sums(small,
                          {request_.steps - most_large_, request_.steps, request_.tail, true});
    const UnitAtoms unit =
        most_large_ > 0 ? CutUnitAbove(u_, cut_, tail_, large_bits, bound) : UnitAtoms{};
    const Atoms coarse = most_large_ > 1 ? InCells(unit.atoms, large_bits - 1) : Atoms{};
    // The sums of small factors, of large ones, and in how many ways the two come together.
    std::vector<Atoms> smalls, larges{{}};
    double below = 0, above = 0, ways = 1, capped = unit.capped;
    for (int64_t k = 0; k <= most_large_; ++k) {
      LatticeSum::Sum sum = sums.Of(request_.steps - k, bound);
      if (k > 0) {
        ways *= (t_ - static_cast<double>(k) + 1) / static_cast<double>(k);
        larges.push_back(k == 1   ? unit.atoms
                         : k == 2 ? SumOf(coarse, coarse, large_bits - 1, bound)
                                  : SumOf(larges.back(), coarse, large_bits - 2, bound));
        // The ends go that are as unlikely as the tail, in all the ways in which they come.
        if (k > 1) capped += ways * Trim(larges.back(), tail_ / ways, bound) / t_;
        sum.atoms = Coarsened(sum.atoms, k);
      }
      const double mass = k > 0 ? ways * larges.back().Mass() : 1;
      const double mean = k > 0 ? ways * larges.back().Mean() : 0;
      below += mass * sum.below;
      above += mass * sum.above + mean * sum.above;
      smalls.push_back(std::move(sum.atoms));
    }
    double lowest = smalls.front().value.front(), highest = smalls.front().value.back();
    for (size_t k = 1; k < smalls.size(); ++k) {
      if (smalls[k].value.empty()) continue;
      lowest = std::min(lowest, smalls[k].value.front());
      highest = std::max(highest, smalls[k].value.back() + larges[k].value.back());
    }
    Cells cells(lowest, highest, Cells::BitsFor(kFinalShare * coarser_ * Spread(u_, t_)));
    cells.Add(smalls.front());
    ways = 1;
    for (size_t k = 1; k < smalls.size(); ++k) {
      ways *= (t_ - static_cast<double>(k) + 1) / static_cast<double>(k);
      if (!smalls[k].value.empty()) cells.AddSum(larges[k], smalls[k], ways);
    }
    RatioLaw law = Finish(cells.Take(bound), request_, bound);
    if (bound == Bound::kUpper) {
      law.infinite_if_removed = capped + above / t_ + below + left_out_if_removed_;
      law.infinite_if_added = below + left_out_if_added_;
    }
    return law;
  }

  // Chooses the cut, and how many factors may be above it; all beyond is left out, and paid for.
  void ChooseCut() {
    const double highest = u_.At(reach_ + u_.s());
    double z = 0;
    while (t_ * std::erfc(z / std::sqrt(2.0)) / 2 > kLarge) z += 0.02;
    cut_ = std::max(u_.At(z), 2.5 * std::sqrt(t_) * std::min(u_.deviation(), 3.0));
    if (cut_ >= highest * 0.5) cut_ = highest;
    const double q = u_.Above(cut_), p = u_.WeightedAbove(cut_);
    most_large_ = cut_ >= highest ? 0 : 1;
    // P(more than k of t are large), and the same weighted by L: one of them is, or k others.
    const auto more = [&](double k, double of) {
      double log_ways = std::lgamma(of + 1) - std::lgamma(k + 2) - std::lgamma(of - k);
      return of <= k ? 0 : std::exp(log_ways + (k + 1) * std::log(q));
    };
    for (;; ++most_large_) {
      const auto k = static_cast<double>(most_large_);
      left_out_if_added_ = most_large_ >= request_.steps ? 0 : more(k, t_);
      left_out_if_removed_ = most_large_ >= request_.steps
                                 ? 0
                                 : p * (k > 0 ? more(k - 1, t_ - 1) : 1) + more(k, t_ - 1);
      if (left_out_if_removed_ + left_out_if_added_ <= request_.tail ||
          most_large_ >= request_.steps - 1)
        break;
      if (most_large_ > kMostLarge) return;
    }
    fits_ = left_out_if_removed_ + left_out_if_added_ <= request_.tail;
  }

  void ChooseStep() {
    // The mass below is left out, and paid for.
    const double lowest = u_.At(-reach_);
    const double mass = u_.Above(cut_);
    const double mean = 1 - u_.WeightedAbove(cut_);
    const double square =
        std::exp(u_.s() * u_.s()) * std::erfc(-(Z(cut_) - 2 * u_.s()) / std::sqrt(2.0)) / 2;
    const double small_mean = mean / (1 - mass);
    const double deviation = std::min(
        std::sqrt(std::max(square / (1 - mass) - small_mean * small_mean, 0.0)), u_.deviation());
    step_ = step_share_ * deviation;
    // All factors of the upper law at 0 must be as unlikely as the tail, if 0 is within a step.
    while (bound_ == Bound::kUpper && lowest < step_ &&
           t_ * std::log(u_.Over(0, step_).short_of / step_) > std::log(request_.tail))
      step_ /= 1.5;
    first_ = lowest < 3 * step_ ? 0 : static_cast<int64_t>(std::floor(lowest / step_));
    last_ = static_cast<int64_t>(std::ceil(cut_ / step_));
    step_ = cut_ / static_cast<double>(last_);
    const double least = first_ > 0 ? t_ * u_.Below(static_cast<double>(first_) * step_) : 0;
    left_out_if_added_ += least;
    left_out_if_removed_ += least;
    const double window = std::min(t_ * cut_, 20 * deviation * std::sqrt(t_) + 6 * cut_) / step_;
    if (last_ - first_ < 16 ||
        static_cast<double>(last_ - first_) > static_cast<double>(kLongestLattice) ||
        window > static_cast<double>(kLongestLattice))
      fits_ = false;
  }
  double Z(double u) const { return std::log(u) / u_.s() + u_.s() / 2; }

  // Sums beside large factors may be known less well: their own spread matters less.
  Atoms Coarsened(const Atoms& atoms, int64_t large) const {
    if (atoms.value.empty()) {
      TACIT_CHECK(bound_ == Bound::kLower, "an upper law leaves nothing out");
      return {};
    }
    const double share = kLargeShare * coarser_ * (large == 1 ? 1 : 3) * 3 * Spread(u_, t_);
    return InCells(atoms, Cells::BitsFor(share));
  }
  Atoms InCells(const Atoms& atoms, int bits) const {
    Cells cells(atoms.value.front(), atoms.value.back(), bits);
    cells.Add(atoms);
    return cells.Take(bound_);
  }

  RatioRequest request_;
  Bound bound_;
  double coarser_, step_share_;
  Lognormal u_;
  double t_, tail_ = 0, reach_ = 0, cut_ = 0, step_ = 0;
  int64_t most_large_ = 0, first_ = 0, last_ = 0;
  double left_out_if_removed_ = 0, left_out_if_added_ = 0;
  bool fits_ = true;
};

}  // namespace

AllocatedRatio RatioByDoubling(const RatioRequest& request) {
  return {Double(request, Bound::kUpper), Double(request, Bound::kLower)};
}

std::optional<AllocatedRatio> RatioByTransform(const RatioRequest& request) {
  std::optional<RatioLaw> upper, lower;
  for (const double share : kStepShares) {
    if (upper) break;
    upper = ByTransform(request, Bound::kUpper, share).Make();
    if (!upper) return std::nullopt;
    if (upper->atoms.at_zero > kUntold * request.tail) upper.reset();
  }
  if (!upper) return std::nullopt;
  // A lattice may be too coarse for any lower law.
  for (const double share : kLowerStepShares) {
    if (lower || (share > kStepShares[0] && request.noise_multiplier < kNoiseOfLongSteps)) continue;
    lower = ByTransform(request, Bound::kLower, share).Make();
  }
  if (!lower) return std::nullopt;
  return AllocatedRatio{*std::move(upper), *std::move(lower)};
}

AllocatedRatio MakeAllocatedRatio(const RatioRequest& request) {
  if (request.steps >= (request.tail < kDeepTail ? kFewStepsOfDeepTails : kFewSteps))
    if (auto ratio = RatioByTransform(request)) return *std::move(ratio);
  return RatioByDoubling(request);
}

}  // namespace tacit::privacy::pld
