#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "privacy/forecast.h"
#include "serve/routes/figures.h"
#include "serve/routes/ledger_route.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// Epsilon that was spent at a moment, or will have been.
struct SpentPoint {
  int64_t time_ms = 0;
  uint64_t steps = 0;  // 0 in a forecast
  double epsilon = 0;
};

// One learner's budget over time, or that of all together.
struct BudgetCurve {
  std::vector<SpentPoint> spent;  // out of the ledger's entries; ends with what is spent now
  privacy::Forecast forecast;
  std::vector<SpentPoint> ahead;  // if the budget runs out: until then
};

// All that follows from a ledger's entries and takes time to find. Immutable.
struct Budgets {
  CommitSeq version{};
  std::string failure = {};                // empty, or the reason that the entries cannot be read
  std::vector<BudgetCurve> learners = {};  // in the order of the board's learners
  BudgetCurve total = {};                  // composed as if one unit were the worst of each learner
  int64_t first_ms = 0, last_ms = 0;  // of the first and the last commit that charged something
  struct Code {
    std::string version;
    uint64_t first_commit = 0;
    int64_t first_ms = 0;
  };
  std::vector<Code> code_versions = {};  // those that learnt, in the order of their first steps
};

// Finds Budgets on a thread of its own, whenever somebody looks at a commit that it has not seen;
// an accountant may need seconds, and the operator's other answers must not wait. It works for a
// tenth of the time at most. Thread-safe.
class BudgetBoard {
 public:
  BudgetBoard(std::vector<ServedLearner> learners, std::map<std::string, privacy::UseLimits> limits,
              std::optional<privacy::TotalBudget> total);

  // Returns the newest there are, null before the first. If they are not the snapshot's, those will
  // be found next.
  std::shared_ptr<const Budgets> Look(std::shared_ptr<const store::Snapshot> snapshot);

  // Finds the snapshot's, on this thread; half of them when the board goes meanwhile.
  Budgets Find(const store::Snapshot& snapshot) const;

  // The delta that the total is composed at: that of the budget, or the largest of the learners.
  double TotalDelta() const;

 private:
  void Loop();

  const std::vector<ServedLearner> learners_;
  const std::map<std::string, privacy::UseLimits> limits_;
  const std::optional<privacy::TotalBudget> total_;
  Mutex mutex_;
  std::shared_ptr<const store::Snapshot> wanted_ TACIT_GUARDED_BY(mutex_);
  std::shared_ptr<const Budgets> found_ TACIT_GUARDED_BY(mutex_);
  PacedThread thread_;  // begins with the first look; the last member: it uses all others
};

}  // namespace tacit::serve
