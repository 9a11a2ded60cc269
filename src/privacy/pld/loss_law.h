#pragma once

#include <memory>
#include <vector>

#include "privacy/event.h"
#include "privacy/pld/allocation_book.h"

// The privacy loss of one event as a random variable: L = log dP/dQ under P, for one dominating
// pair (P, Q).
namespace tacit::privacy::pld {

// The neighbour that P belongs to: the one with the row (kRemove), the one without (kAdd), or
// either of two that differ in its value (kReplace).
enum class Direction { kRemove, kAdd, kReplace };

// P(L in I) for an interval of losses I, and E_P[(1 - e^(reference - L)); L in I], the difference
// P(I) - e^reference Q(I) without its cancellation.
struct IntervalMass {
  double mass = 0;
  double gain = 0;
};

// A point of a rough sketch of the law, for planning only.
struct PilotPoint {
  double loss = 0;
  double mass = 0;
};

// One direction of one event. Immutable.
class LossLaw {
 public:
  virtual ~LossLaw() = default;

  // Mass and gain over losses in (low, high]; the ends may be infinite. Mass is accurate to 1e-14
  // of the mass on the smaller side of the interval, gain to 1e-8 of mass * (length of the
  // interval), each end to the last place of a double.
  virtual IntervalMass Over(double low, double high, double reference) const = 0;
  // Losses with at most `tail` of P beyond them.
  virtual double Lowest(double tail) const = 0;
  virtual double Highest(double tail) const = 0;
  virtual std::vector<PilotPoint> Pilot() const = 0;
  // The size of an atom that should lie on the lattice; 0 if there is none.
  virtual double Atom() const { return 0; }
  // The law to make the optimistic bound of, where the event's own is known between two laws only:
  // this one is then the pessimistic.
  virtual const LossLaw& Below() const { return *this; }
  // The distance from 0 of a bounded end where most of the mass may crowd; 0 if there is none.
  virtual double Edge() const { return 0; }
};

// The origin of laws of allocations, and the mass they may cut off and pay for (RatioRequest). A
// law made without a book is made for itself.
struct LawSource {
  AllocationBook* book = nullptr;
  double tail = kLeastTail;
};

// Makes the law of an event; a zCDP event gets the Gaussian's. REQUIRES a valid event, and no
// kReplace of an allocation.
std::unique_ptr<LossLaw> MakeLossLaw(const Event& event, Direction direction,
                                     const LawSource& source = {});

// delta(epsilon) of one event made once: the gain beyond epsilon. Relative accuracy 1e-9.
double OneEventDelta(const LossLaw& law, double epsilon);

}  // namespace tacit::privacy::pld
