#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/interval.h"
#include "privacy/ledger.h"
#include "train/learner/step_totals.h"
#include "train/progress.h"
#include "wiring/assembly.h"
#include "wiring/verdict.h"

namespace tacit::wiring {

// Formats the days as a table, with the privacy they cost of what was promised. Its last row is of
// the predictions that tell how good the learner is, where they are of several rows. `best_auc` (by
// file name) is known for generated logs only; without it its columns are left out.
std::string DayTable(const LearnerDays& learner, const std::map<std::string, double>& best_auc,
                     const privacy::Promise& promise);
// The same for a model of the next item.
std::string RankedDayTable(const LearnerDays& learner, const privacy::Promise& promise);

// The AUC of several click learners side by side, one line a day; empty for fewer than two.
std::string SideBySide(const std::vector<LearnerDays>& learners,
                       const std::map<std::string, double>& best_auc);

// A figure with four digits, and an interval with three; "-" where there is none.
std::string Figure(double value);
std::string Range(const Interval& interval);

// The days of all learners of a run; without any for those that took no step and had no day held
// out.
std::vector<LearnerDays> LearntDays(const Assembly& assembly, const train::Progress& progress,
                                    const train::StepTotals::View& totals);
// Everything that a run has learnt and predicted: for each learner with days a table and a verdict,
// and the click learners side by side.
std::string LearntTables(const Assembly& assembly, const std::vector<LearnerDays>& learners);

}  // namespace tacit::wiring
