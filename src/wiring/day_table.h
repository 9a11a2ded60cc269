#pragma once

#include <map>
#include <string>
#include <vector>

#include "privacy/ledger.h"
#include "train/progress.h"
#include "wiring/assembly.h"

namespace tacit::wiring {

// Formats the days as a table, with the privacy they cost of what was promised. `best_auc` (by file
// name) is known for generated logs only; without it its columns are left out.
std::string DayTable(const std::vector<train::DayRow>& days,
                     const std::map<std::string, double>& best_auc, double epsilon,
                     const privacy::Promise& promise);
// The same for a model of the next item.
std::string RankedDayTable(const std::vector<train::DayRow>& days, double epsilon,
                           const privacy::Promise& promise);

// The days of one click learner.
struct LearnerDays {
  std::string id;
  double epsilon = 0;  // spent; infinite: it is not private
  std::vector<train::DayRow> days;
};
// The AUC of several click learners side by side, one line a day; empty for fewer than two.
std::string SideBySide(const std::vector<LearnerDays>& learners,
                       const std::map<std::string, double>& best_auc);

// Everything that a run has learnt and predicted: a table for each learner that took a step or had
// days held out, and the click learners side by side.
std::string LearntTables(const Assembly& assembly, const train::Progress& progress);

}  // namespace tacit::wiring
