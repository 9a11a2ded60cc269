#pragma once

#include <CLI/CLI.hpp>

#include "cli/parts/command.h"

namespace tacit::cli {

// Adds `tacit checkpoint export`.
void AddCheckpointExport(CLI::App* checkpoint, Action* chosen);

}  // namespace tacit::cli
