#pragma once

#include "app/commands/command.h"

namespace tacit::app {

// Adds `sequence` to `tacit evaluate`.
void AddEvaluateSequence(CLI::App& evaluate, Action* chosen);

}  // namespace tacit::app
