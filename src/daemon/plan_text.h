#pragma once

#include <string>
#include <vector>

#include "wiring/assembly.h"

namespace tacit::daemon {

// The first part of `tacitd --check-config`: the whole configuration, its numbers, and warnings.
std::string PlanText(const wiring::Assembly& assembly);

// A sentence for each promise that protects little, and for each secret that others can read.
std::vector<std::string> ConfigurationWarnings(const wiring::Assembly& assembly);

}  // namespace tacit::daemon
