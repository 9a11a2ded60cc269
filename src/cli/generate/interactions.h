#pragma once

#include "cli/command.h"

namespace tacit::cli {

// Adds `interactions` to `tacit generate`.
void AddGenerateInteractions(CLI::App& generate, Action* chosen);

}  // namespace tacit::cli
