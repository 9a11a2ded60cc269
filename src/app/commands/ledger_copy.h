#pragma once

#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "privacy/ledger.h"

namespace tacit::app {

struct LedgerOptions;

// A ledger as somebody else sees it: its entries, and what is told beside them.
struct LedgerCopy {
  std::vector<privacy::LedgerEntry> entries;
  Digest head{};  // the last entry's
  privacy::Ledger::Promises promises;

  // What the entries claim, of each learner that has any or was promised something; by name.
  std::vector<privacy::LedgerTotal> Learners() const;
  // The delta at which all learners together are stated: the total budget's, or the largest.
  double TotalDelta() const;
  std::string HeadName() const;  // "sha256:..."
};

// From a store, a checkpoint, or the operator's listener of a running daemon. kCorruption unless it
// ends at the head that was committed. Whether the chain is right is VerifyChain's to say.
Result<LedgerCopy> CopyLedger(const LedgerOptions& options);

}  // namespace tacit::app
