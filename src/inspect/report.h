#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "inspect/proposal.h"
#include "inspect/roles.h"
#include "inspect/sample.h"
#include "inspect/trial.h"

namespace tacit::inspect {

// The first thing that is said, in every form of the output.
inline constexpr std::string_view kRawWarning =
    "tacit inspect looks at RAW records: nothing it says is private, and no budget pays for what "
    "is "
    "chosen by it";

// A time of day, in UTC.
std::string UtcText(double milliseconds);

// Days by the sample's times, or, of noised counts, those of the trial.
std::optional<Days> DaysOf(const Sample& sample, const Roles& roles,
                           const std::optional<Trial>& trial);

// Sentences about what an operator should look at before anything is learnt.
std::vector<std::string> WarningsAbout(const Sample& sample, const Roles& roles,
                                       const std::optional<Trial>& trial);

// Lines feature<TAB>value for the values that a raw sample has kept, of the proposal's categorical
// features of words: the list that `tacit weights --names` reads.
std::string NamesText(const Sample& sample, const Roles& roles);

// A warning of a proposal whose first period has few records of one label beside its noise; empty
// if there are enough.
std::string FewLabelsInNoise(const Proposal& proposal, const Sample& sample, const Trial& trial,
                             bool label_is_open = false);

// The report for people, a line each, and for programs. Without a trial there is no proposal.
std::string ReportText(const Sample& sample, const Roles& roles, const std::optional<Trial>& trial);
boost::json::object ReportJson(const Sample& sample, const Roles& roles,
                               const std::optional<Trial>& trial);

}  // namespace tacit::inspect
