#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "privacy/ledger.h"

// When a budget will be used up, if a stream goes on as it has: what is yet to be spent is composed
// with what was, so that epsilon grows as the accountant has it and not in a straight line. Not a
// promise: the promise is that the step which would cross a budget is not taken.
namespace tacit::privacy {

// How the spending of one learner's worst unit has grown, from its entries.
class Growth {
 public:
  enum class Kind {
    kNothing,    // nothing has been charged yet
    kTooLittle,  // not enough of a history to go by
    kConstant,   // it does not grow: no record has been used again so far
    kByStep,     // with every step (a user may be in each, up to an allowance)
    kByPass,     // each time that records are used again
    kUnbounded,  // nothing is promised
  };

  // REQUIRES entries that verify. `learner` need not be among them.
  static Growth Of(std::span<const LedgerEntry> entries, std::string_view learner);

  Kind kind() const { return kind_; }
  const Spending& now() const { return now_; }
  int64_t begin_ms() const { return begin_ms_; }  // the history's
  int64_t end_ms() const { return end_ms_; }

  // What will have been spent at a time not before end_ms; never less than now.
  Spending At(double time_ms) const;
  // With one more step, where each one costs; else now.
  Spending AfterOneMore() const;

 private:
  void Observe(const std::vector<const LedgerEntry*>& own);
  void ObservePasses(const std::vector<const LedgerEntry*>& own);

  Kind kind_ = Kind::kNothing;
  Spending now_, gained_;
  Spending pending_;  // what the pass under way is yet to cost, if it costs what the first one did
  int64_t begin_ms_ = 0, end_ms_ = 0;
  double gains_ = 0;          // in so many equal parts: steps, or passes behind the first
  int64_t last_gain_ms_ = 0;  // of passes
};

// What the worst unit of an event-level learner can ever come to, if its configuration stays as it
// is and lets no record be in more than so many of its steps, and of its releases beside them.
// Of a user-level learner, by its users' allowance whatever the limits. Nothing where that cannot
// be said: before the first step, or where users have no allowance.
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
    kExhausted,  // there is no room for what comes next
    kRunsOut,
    kBeyondHorizon,  // not within a hundred years
  };
  Kind kind = Kind::kNoBudget;
  double epsilon = 0;  // now, upper bound
  double most = 0;     // of MostEver; 0: not known
  double budget = 0;
  double delta = 0;
  int64_t begin_ms = 0, end_ms = 0;  // of the history this is from
  int64_t runs_out_ms = 0;           // kRunsOut: UTC
};

// Of one learner alone, and of several on one stream: their spendings are added as if one record
// had been the worst of each, which bounds the total from above, so that the day may come later.
// `most`: MostEver of the learner, or of all of them added up.
Forecast Foretell(std::span<const Growth> growths, const TotalBudget& budget,
                  const std::optional<Spending>& most = std::nullopt);

}  // namespace tacit::privacy
