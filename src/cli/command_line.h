#pragma once

#include <optional>
#include <vector>

#include "cli/parts/command.h"

namespace tacit::cli {

// Adds all commands of `tacit`. `gpu` are benches beside bench::AllBenches.
void AddCommands(CLI::App& cli, std::vector<bench::Bench> gpu, Action* chosen);

// Reads a command line, so that the chosen action is set. Returns the exit code of one that ends
// here: a wrong one, which is told on standard error, or a question for help.
std::optional<int> ReadWords(CLI::App& cli, int argc, const char* const* argv);

}  // namespace tacit::cli
