#pragma once

#include "cli/parts/command.h"

namespace tacit::cli {

// Adds `recommend` to `tacit query`.
void AddQueryRecommend(CLI::App& query, Action* chosen);

}  // namespace tacit::cli
