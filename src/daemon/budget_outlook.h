#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/paced_thread.h"
#include "metrics/registry.h"
#include "store/types/snapshot.h"
#include "wiring/assembly.h"
#include "wiring/ledger_forecast.h"

namespace tacit::daemon {

// Shows when each budget will have run out, as `tacit ledger forecast` has it, on a thread of its
// own: a minute after what it last took into account has changed. It follows from the committed
// ledger and the configuration, so everybody may see it.
class BudgetOutlook {
 public:
  using Latest = std::function<std::shared_ptr<const store::Snapshot>()>;

  // The registry and all that `latest` uses must outlive it.
  BudgetOutlook(const wiring::Assembly& assembly, Latest latest, metrics::Registry& registry);

 private:
  void Look();

  const Latest latest_;
  wiring::ForecastBudgets budgets_;
  std::vector<std::pair<std::string, metrics::Gauge>> runs_out_;  // "": all learners together
  uint64_t version_ = 0;                                          // that was looked at
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::daemon
