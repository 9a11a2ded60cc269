#pragma once

#include "app/commands/command.h"

namespace tacit::app {

// tacit generate interactions.
void AddGenerateInteractions(CLI::App& generate, Action* chosen);

}  // namespace tacit::app
