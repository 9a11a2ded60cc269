#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/tuned.h"
#include "wiring/assembly.h"

// Says how much noise stands beside how many records.
namespace tacit::wiring {

// A period that is one release and has fewer records learns next to nothing. The figure is that of
// a linear model's first period (base/tuned.h).
inline constexpr uint64_t kEnoughRecords = tuned::kPeriodFirst;

// "4.3 times what a record adds to a number; a period has at most 53,000 records". `file_records`:
// those of one file, which may end a step; nothing if not known, or if there are no files.
std::string SignalText(const config::Learner& learner, const LearnerPlan& plan,
                       std::optional<uint64_t> file_records);

// A warning of a period that has too few records, with what to do; empty if there are enough.
// `one_file`: the log has no other, so that no number of files makes its period longer.
std::string TooFewRecords(const config::Learner& learner, const LearnerPlan& plan,
                          std::optional<uint64_t> file_records, bool one_file = false);

}  // namespace tacit::wiring
