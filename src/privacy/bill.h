#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "privacy/charge.h"
#include "privacy/coverage.h"
#include "privacy/event.h"
#include "privacy/ledger.h"

namespace tacit::privacy {

// The public frame of a step, as far as it decides what the step costs and whom.
struct BilledStep {
  bool whole_period = false;  // `ranges` are the whole period's, the same in each of its steps
  bool opens_period = false;  // the step is a period's first, before which a release may be made
  uint64_t period_steps = 0;  // of a whole period: the number of steps that are taken of it
  std::span<const OffsetRange> ranges = {};  // the offsets that were eligible; may be empty
};

// The price of one learner's steps since its last commit, and of the release that opened their
// period: what the ledger is charged. Steps on fresh offsets add their ranges; the steps of a
// period share them. A short log may begin its next pass within one commit, so that ranges repeat.
// A bill covers one period only. Steps in blocks (Charge::block_steps) are all charged with the
// first one of their period, since which of them a unit is in is drawn then: the others are on the
// bill at no cost. A value.
class Bill {
 public:
  explicit Bill(std::string learner = {}, std::string topic = {})
      : learner_(std::move(learner)), topic_(std::move(topic)) {}

  bool empty() const { return charges_.empty(); }
  // Returns true if the step is of a later period than the steps of this bill: commit them first.
  bool EndsBefore(const BilledStep& step) const;
  // Adds a step at this charge and, if the step opens a period, the release of the opening.
  // REQUIRES !EndsBefore(step).
  void Add(const BilledStep& step, const Charge& charge, const std::optional<Charge>& opening);

  const std::vector<CommitCharge>& charges() const { return charges_; }
  // Returns the charges for a commit, and leaves an empty bill.
  std::vector<CommitCharge> Take() { return std::exchange(charges_, {}); }

  // Adds the bill to the coverage, offset by offset, as the ledger does.
  void AddTo(Coverage* coverage) const;
  // The composition that a unit which was eligible for everything on the bill has spent.
  Spending Whole() const;
  // The same as the accountants' events. REQUIRES bounded charges.
  std::vector<CountedEvent> Events() const;

 private:
  void Begin(const Charge& charge);
  void BeginPeriod(const BilledStep& step, const Charge& opening);
  void AddOfBlock(const BilledStep& step);

  std::string learner_, topic_;
  // The opening, if it costs something, then the steps. Empty if no step was taken.
  std::vector<CommitCharge> charges_;
};

// Divides the mu^2 that a period may spend on a unit between the release of its opening and its
// steps, which have the unit for certain: together they are one Gaussian of `mu`.
struct PeriodNoise {
  double opening = 0;  // noise multiplier of the opening; 0: the period has none, or no noise
  double step = 0;     // noise multiplier of each step
};
// REQUIRES an opening's share of mu^2 in [0, 1), and a step. An infinite mu asks for no noise.
PeriodNoise DividePeriod(double mu, double opening_share, uint64_t steps);

}  // namespace tacit::privacy
