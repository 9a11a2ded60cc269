#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "http/http.h"
#include "privacy/ledger.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// A learner whose account is shown. A value type.
struct ServedLearner {
  LearnerIndex index;
  privacy::Promise promise;
};

// The most entries in one answer of GET /v1/ledger; fewer if they would exceed kLedgerPageBytes.
inline constexpr uint64_t kLedgerPageEntries = 4096;
inline constexpr size_t kLedgerPageBytes = size_t{4} << 20;

// Appends ,"bounds":{...}; nothing where a unit's participation has no numeric bounds.
void AppendBounds(const privacy::Bounds& bounds, std::string* out);

// Answers GET /v1/ledger?from=INDEX&count=N: the chain as of the snapshot, in the encoded form that
// is hashed, and the promises. docs/internals/serve.md documents the form.
void AnswerLedger(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                  const std::optional<privacy::TotalBudget>& total_budget, std::string_view query,
                  http::Reply* reply);

}  // namespace tacit::serve
