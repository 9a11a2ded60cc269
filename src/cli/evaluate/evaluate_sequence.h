#pragma once

#include "cli/parts/command.h"

namespace tacit::cli {

// Adds `sequence` to `tacit evaluate`.
void AddEvaluateSequence(CLI::App& evaluate, Action* chosen);

}  // namespace tacit::cli
