#pragma once

#include <string>
#include <vector>

#include "audit/audit.h"
#include "privacy/event.h"

// The same audit, of a learner whose records draw their steps: of the product's participation, its
// click learner and its bill together. What such a period costs is no Gaussian but a curve
// delta(epsilon), and the adversary is held against that: a test that is right with probability p
// in the world with the canary, and wrong with probability q in the other, has p - e^epsilon q <=
// delta at every epsilon, and the same with the worlds exchanged.
namespace tacit::audit {

// An instance: one period of a few records, the canary among them, taken in blocks of steps.
struct HeldSetting {
  double sigma = 1;
  uint64_t block_steps = 2, blocks = 1;
};

enum class HeldFault {
  kNone,
  kPoissonSteps,   // the steps draw coins, and are charged as an allocation
  kPoissonCharge,  // the steps are an allocation, and are charged as coins
  kKeyDrawnAnew,   // behind each step, as by restarts that do not keep the key
  kTwice,          // a record is in the step behind its own, too
  kByContent,      // what a record holds decides which step it is in
  kEqualSteps,     // a shuffle is cut into steps of equal size
};

struct HeldCase {
  std::string name;
  HeldSetting setting;
  HeldFault fault = HeldFault::kNone;
  uint64_t runs = 40'000;  // that prove it, in each world
};

std::vector<HeldCase> RightPeriods();
// Allocations with one fault planted in each.
std::vector<HeldCase> PlantedPeriods();

// One test of the adversary's, and what it proves.
struct HeldTest {
  double epsilon = 0;
  size_t statistic = 0;
  Threshold threshold;
  bool exchanged = false;  // p is the rate of the world without the canary
  double charged = 0;      // delta(epsilon) by the bill
  double lower = 0;        // delta is above it, except for a probability of 2 alpha
  double seen = 0;         // by the rates as they were seen
};

struct HeldFinding {
  std::vector<privacy::CountedEvent> bill;
  HeldTest least_likely;  // under the charge
  HeldTest nearest;       // to the charge, where that is a tenth or more

  bool Exceeds() const { return least_likely.lower > least_likely.charged; }
  bool Reaches(double share) const { return nearest.lower >= share * nearest.charged; }
};
HeldFinding AuditHeld(const HeldCase& audited, const AuditOptions& options);

std::string Describe(const HeldCase& audited, const HeldFinding& finding);

}  // namespace tacit::audit
