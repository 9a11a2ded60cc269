#include "privacy/pld/ratio_law.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "privacy/infinity.h"

namespace tacit::privacy::pld {
namespace {

constexpr size_t kPilotPoints = 240;
constexpr double kLargeLoss = 8;  // e^8 is four digits of sixteen

// log of a ratio near 1 without its cancellation: the difference is exact.
double LogOf(double ratio) {
  return std::abs(ratio - 1) < 0.5 ? std::log1p(ratio - 1) : std::log(ratio);
}

}  // namespace

AllocationLaw::AllocationLaw(const AllocatedRatio& ratio, Direction direction)
    : AllocationLaw(ratio.upper, direction) {
  TACIT_CHECK(direction != Direction::kReplace);
  below_ = std::unique_ptr<AllocationLaw>(new AllocationLaw(ratio.lower, direction));
}

AllocationLaw::AllocationLaw(const RatioLaw& law, Direction direction) {
  const Atoms& atoms = law.atoms;
  const size_t size = atoms.value.size();
  const bool add = direction == Direction::kAdd;
  infinite_ = add ? law.infinite_if_added + atoms.at_zero : law.infinite_if_removed;
  for (size_t i = 0; i < size; ++i) {
    const size_t at = add ? size - 1 - i : i;
    const double ratio = atoms.value[at];
    loss_.push_back(add ? -LogOf(ratio) : LogOf(ratio));
    mass_.push_back(add ? atoms.mass[at] : atoms.mass[at] * ratio);
    inverse_.push_back(add ? ratio - 1 : (1 - ratio) / ratio);
  }
}

IntervalMass AllocationLaw::Over(double low, double high, double reference) const {
  IntervalMass sum;
  if (high == kInfinity) sum.mass = sum.gain = infinite_;
  const auto begin = std::upper_bound(loss_.begin(), loss_.end(), low) - loss_.begin();
  const auto end = std::upper_bound(loss_.begin(), loss_.end(), high) - loss_.begin();
  const auto add = [&](const auto& less_gain) {  // e^(r - l) - 1 of each atom
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      sum.mass += mass_[i];
      sum.gain -= mass_[i] * less_gain(i);
    }
  };
  // (e^r - 1) + e^r (e^-l - 1) costs no exponential an atom, and loses as many digits as e^r has.
  if (reference > kLargeLoss) {
    add([&](size_t i) { return std::expm1(reference - loss_[i]); });
  } else {
    const double more = std::expm1(reference), factor = 1 + more;
    add([&](size_t i) { return more + factor * inverse_[i]; });
  }
  return sum;
}

double AllocationLaw::Lowest(double tail) const {
  double below = 0;
  size_t i = 0;
  while (i + 1 < loss_.size() && (below += mass_[i]) <= tail) ++i;
  return loss_[i];
}

double AllocationLaw::Highest(double tail) const {
  double above = infinite_;
  size_t i = loss_.size() - 1;
  while (i > 0 && (above += mass_[i]) <= tail) --i;
  return loss_[i];
}

// Neighbouring atoms come together while they hold little; those far out stay, however light.
std::vector<PilotPoint> AllocationLaw::Pilot() const {
  std::vector<PilotPoint> points;
  const size_t group = std::max<size_t>(1, loss_.size() / kPilotPoints);
  for (size_t i = 0; i < loss_.size(); i += group) {
    PilotPoint point;
    for (size_t j = i; j < std::min(loss_.size(), i + group); ++j) {
      point.mass += mass_[j];
      point.loss += mass_[j] * loss_[j];
    }
    if (!(point.mass > 0)) continue;
    point.loss /= point.mass;
    points.push_back(point);
  }
  return points;
}

}  // namespace tacit::privacy::pld
