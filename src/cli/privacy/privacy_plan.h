#pragma once

#include <CLI/CLI.hpp>

#include "cli/parts/command.h"

namespace tacit::cli {

// Adds `plan` to `tacit privacy`.
void AddPrivacyPlan(CLI::App* privacy, Action* chosen);

}  // namespace tacit::cli
