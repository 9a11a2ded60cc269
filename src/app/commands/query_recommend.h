#pragma once

#include "app/commands/command.h"

namespace tacit::app {

// tacit query recommend.
void AddQueryRecommend(CLI::App& query, Action* chosen);

}  // namespace tacit::app
