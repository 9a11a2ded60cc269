#pragma once

#include "cli/parts/command.h"

namespace tacit::cli {

// Adds `interactions` to `tacit generate`.
void AddGenerateInteractions(CLI::App& generate, Action* chosen);

}  // namespace tacit::cli
