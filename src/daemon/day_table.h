#pragma once

#include <map>
#include <string>
#include <vector>

#include "privacy/ledger.h"
#include "train/progress.h"

namespace tacit::daemon {

// Formats the days as a table, with the privacy they cost of what was promised. `best_auc` (by file
// name) is known for generated logs only; without it its columns are left out.
std::string DayTable(const std::vector<train::DayRow>& days,
                     const std::map<std::string, double>& best_auc, double epsilon,
                     const privacy::Promise& promise);
// The same for a model of the next item.
std::string RankedDayTable(const std::vector<train::DayRow>& days, double epsilon,
                           const privacy::Promise& promise);

}  // namespace tacit::daemon
