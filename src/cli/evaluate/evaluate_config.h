#pragma once

#include "cli/parts/command.h"

namespace tacit::cli {

// Adds `--config` and what goes with it to `tacit evaluate` itself.
void AddEvaluateConfig(CLI::App& evaluate, Action* chosen);

}  // namespace tacit::cli
