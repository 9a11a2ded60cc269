#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "http/http.h"
#include "privacy/ledger.h"
#include "serve/routes/ledger_route.h"
#include "serve/routes/services.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// The routes of README.md, for Server::Start. The builder of recommendation states lives as long as
// the factory or any handler it made.
HandlerFactory MakeApi(Services services);

// The body of GET /v1/privacy, for callers with a snapshot and no server.
std::string PrivacyJson(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                        const std::function<bool(LearnerIndex)>& budget_exhausted,
                        const std::optional<privacy::TotalBudget>& total_budget);

}  // namespace tacit::serve
