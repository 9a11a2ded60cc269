#pragma once

#include <string>
#include <vector>

#include "store/types/snapshot.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

// Returns a sentence for each budget below the epsilon that the store's ledger has already charged.
std::vector<std::string> BudgetsBelowSpent(const wiring::Assembly& assembly,
                                           const store::Snapshot& snapshot);

}  // namespace tacit::daemon
