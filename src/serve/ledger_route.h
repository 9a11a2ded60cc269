#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "privacy/ledger.h"
#include "serve/http.h"
#include "store/snapshot.h"

namespace tacit::serve {

// A learner whose account is shown. A value.
struct ServedLearner {
  LearnerIndex index;
  privacy::Promise promise;
};

// Entries in one answer of GET /v1/ledger, at most; fewer where they would be longer than
// kLedgerPageBytes.
inline constexpr uint64_t kLedgerPageEntries = 4096;
inline constexpr size_t kLedgerPageBytes = size_t{4} << 20;

// ,"bounds":{...}; nothing where a unit's part is not bounded in numbers.
void AppendBounds(const privacy::Bounds& bounds, std::string* out);

// GET /v1/ledger?from=INDEX&count=N: the chain as of the snapshot, in the encoded form of which it
// is the hash, and what was promised. README.md has the form.
void AnswerLedger(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                  const std::optional<privacy::TotalBudget>& total_budget, std::string_view query,
                  Reply* reply);

}  // namespace tacit::serve
