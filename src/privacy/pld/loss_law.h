#pragma once

#include <memory>
#include <vector>

#include "privacy/event.h"

// The privacy loss of one event as a random variable: L = log dP/dQ under P, for one dominating
// pair (P, Q).
namespace tacit::privacy::pld {

// Which of two neighbours P belongs to: the one with the row (kRemove), the one without (kAdd), or
// either of two that differ in its value (kReplace).
enum class Direction { kRemove, kAdd, kReplace };

// Of an interval of losses I: P(L in I), and E_P[(1 - e^(reference - L)); L in I], the difference
// P(I) - e^reference Q(I) without its cancellation.
struct IntervalMass {
  double mass = 0;
  double gain = 0;
};

// A point of a rough picture of the law, for planning only.
struct PilotPoint {
  double loss = 0;
  double mass = 0;
};

// One direction of one event. Immutable.
class LossLaw {
 public:
  virtual ~LossLaw() = default;

  // Over losses in (low, high]; the ends may be infinite. Mass is good to 1e-14 of what lies on the
  // smaller side of the interval, gain to 1e-8 of mass * (length of the interval), each end to the
  // last place of a double.
  virtual IntervalMass Over(double low, double high, double reference) const = 0;
  // Losses with at most `tail` of P beyond them.
  virtual double Lowest(double tail) const = 0;
  virtual double Highest(double tail) const = 0;
  virtual std::vector<PilotPoint> Pilot() const = 0;
  // The size of an atom that should lie on the lattice; 0 when there is none.
  virtual double Atom() const { return 0; }
  // How near 0 a bounded end lies at which most of the mass may crowd; 0 when there is none.
  virtual double Edge() const { return 0; }
};

// zCDP and kinds that have a law of their own; REQUIRES a valid event.
std::unique_ptr<LossLaw> MakeLossLaw(const Event& event, Direction direction);

// delta(epsilon) of one event made once: the gain beyond epsilon. Relative accuracy 1e-9.
double OneEventDelta(const LossLaw& law, double epsilon);

}  // namespace tacit::privacy::pld
