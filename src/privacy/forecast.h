#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "privacy/ledger.h"

// Forecasts when a budget will be used up if a stream continues at its past rate. Future spending
// is composed with past spending, so that epsilon grows as the accountant computes it and not in a
// straight line. The forecast is no promise; the promise is that a step that would cross a budget
// is not taken.
namespace tacit::privacy {

// The growth of one learner's worst-unit spending, from its entries.
class Growth {
 public:
  enum class Kind {
    kNothing,    // nothing has been charged yet
    kTooLittle,  // the history is too short
    kConstant,   // it does not grow: no record has been used again so far
    kByStep,     // grows with every step (a user may be in each, up to an allowance)
    kByPass,     // grows each time that records are used again
    kUnbounded,  // nothing is promised
  };

  // REQUIRES entries that verify. `learner` may be missing from them.
  static Growth Of(std::span<const LedgerEntry> entries, std::string_view learner);

  Kind kind() const { return kind_; }
  const Spending& now() const { return now_; }
  int64_t begin_ms() const { return begin_ms_; }  // the history's
  int64_t end_ms() const { return end_ms_; }

  // The spending expected at a time not before end_ms; never less than now().
  Spending At(double time_ms) const;
  bool each_step_costs() const { return each_step_costs_; }
  // The spending after one more step: more than now() only where each step costs.
  Spending AfterOneMore() const;
  // The same of a learner that takes no further step.
  Growth AtRest() const;

 private:
  void Observe(const std::vector<const LedgerEntry*>& own);
  void ObservePasses(const std::vector<const LedgerEntry*>& own);

  Kind kind_ = Kind::kNothing;
  bool each_step_costs_ = false;
  Spending now_, gained_;
  Spending pending_;  // cost still expected of the current pass, if it costs as much as the first
  int64_t begin_ms_ = 0, end_ms_ = 0;
  double gains_ = 0;          // equal parts of gained_: steps, or passes after the first
  int64_t last_gain_ms_ = 0;  // when the last pass began
};

// The most that the worst unit of an event-level learner can ever spend, if its configuration stays
// the same and `limits` bound the steps, and the releases beside them, that a record is in. For a
// user-level learner the users' allowance decides, under any limits. Nothing if no bound is
// known: before the first step, or without an allowance.
struct UseLimits {
  uint64_t steps = 0, releases = 0;
};
std::optional<Spending> MostEver(std::span<const LedgerEntry> entries, std::string_view learner,
                                 const UseLimits& limits);

struct Forecast {
  enum class Kind {
    kNoBudget,  // nothing was promised
    kNothingSpent,
    kTooLittleHistory,
    kConstant,   // so far; until records are used again
    kBounded,    // MostEver is within the budget
    kExhausted,  // no room for the next step
    kRunsOut,
    kBeyondHorizon,  // not within a hundred years
  };
  Kind kind = Kind::kNoBudget;
  double epsilon = 0;  // now, upper bound
  double most = 0;     // epsilon of MostEver; 0: not known
  double budget = 0;
  double delta = 0;
  int64_t begin_ms = 0, end_ms = 0;  // the history used
  int64_t runs_out_ms = 0;           // kRunsOut: UTC
};

// Forecasts one learner, or several on one stream. Their spendings are added as if one record were
// the worst of each. That bounds the total from above, so the budget may last longer. `most`:
// MostEver of the learner, or its sum over all of them.
Forecast Foretell(std::span<const Growth> growths, const TotalBudget& budget,
                  const std::optional<Spending>& most = std::nullopt);

}  // namespace tacit::privacy
