#pragma once

#include <string>
#include <vector>

#include "privacy/spending.h"
#include "wiring/assembly.h"

// Warnings about budgets too small for a single step, and about promises that protect little.
namespace tacit::wiring {

// The learner's first step costs this, with its period's opening release.
privacy::Spending FirstStep(const LearnerPlan& plan);

// A sentence for each learner whose first step, with its period's opening release, would exceed a
// budget. Names the key. `laws` save time.
std::vector<std::string> FirstStepsRefused(const Assembly& assembly,
                                           const privacy::Laws& laws = nullptr);

// A sentence for each epsilon and delta so large that it protects little. Names the key.
std::vector<std::string> WeakPromises(const Assembly& assembly);

}  // namespace tacit::wiring
