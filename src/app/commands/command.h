#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/result.h"

namespace tacit::app {

// What a command line comes to. The command that was chosen leaves it behind; main runs it.
using Action = std::function<Result<int>()>;

// Each adds its subcommand: options, examples, and what to do when it is chosen.
void AddGenerate(CLI::App& cli, Action* chosen);
void AddReplay(CLI::App& cli, Action* chosen);
void AddQuery(CLI::App& cli, Action* chosen);
void AddLedger(CLI::App& cli, Action* chosen);
void AddPrivacy(CLI::App& cli, Action* chosen);
void AddEvaluate(CLI::App& cli, Action* chosen);
void AddBench(CLI::App& cli, Action* chosen);

}  // namespace tacit::app
