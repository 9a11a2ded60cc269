#pragma once

#include <CLI/CLI.hpp>

#include "cli/parts/command.h"

namespace tacit::cli {

// `tacit privacy report`.
void AddPrivacyReport(CLI::App* privacy, Action* chosen);

}  // namespace tacit::cli
