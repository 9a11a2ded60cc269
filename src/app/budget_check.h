#pragma once

#include <string>
#include <vector>

#include "app/assembly.h"
#include "store/snapshot.h"

// Budgets that leave a learner nothing to do.
namespace tacit::app {

// A sentence for each learner whose very first step, with what is released before it, a budget does
// not allow. Names the key.
std::vector<std::string> FirstStepsRefused(const Assembly& assembly);

// A sentence for each budget that is below what the store's ledger has charged already.
std::vector<std::string> BudgetsBelowSpent(const Assembly& assembly,
                                           const store::Snapshot& snapshot);

}  // namespace tacit::app
