#pragma once

#include <CLI/CLI.hpp>

#include "app/commands/command.h"

namespace tacit::app {

// tacit privacy plan.
void AddPrivacyPlan(CLI::App* privacy, Action* chosen);

}  // namespace tacit::app
