#pragma once

#include <string>
#include <vector>

#include "wiring/assembly.h"

namespace tacit::daemon {

// The output of `tacitd --check-config`: the whole configuration, its numbers, and warnings.
std::string PlanText(const wiring::Assembly& assembly);

// The end of `tacitd --check-config` where the source is a topic: a comment on what its brokers say
// of it. Brokers that do not answer within a moment are a note: the rest holds without them. Reads
// no record, and changes nothing at the brokers.
std::string TopicText(const config::Config& config);

// A sentence for each promise that protects little, and for each secret that others can read.
std::vector<std::string> ConfigurationWarnings(const wiring::Assembly& assembly);

}  // namespace tacit::daemon
