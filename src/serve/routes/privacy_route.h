#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/ledger.h"
#include "privacy/spent.h"
#include "serve/routes/ledger_route.h"
#include "serve/routes/user_route.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// The body of GET /v1/privacy, for callers with a snapshot and no server; `spent` may be empty.
std::string PrivacyJson(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                        const std::function<privacy::Spent(LearnerIndex)>& spent,
                        const std::optional<privacy::TotalBudget>& total_budget);

// Writes the body of GET /v1/users/{id}/privacy: what anybody can tell at most of one user from
// what was learnt, by the learners' promises and by how much of each allowance the user has used.
void WriteUserPrivacy(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                      std::string_view id, const UserReport& report, std::string* out);

}  // namespace tacit::serve
