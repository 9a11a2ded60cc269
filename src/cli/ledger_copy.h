#pragma once

#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "privacy/ledger.h"

namespace tacit::cli {

struct LedgerOptions;

// A ledger as seen from outside: its entries, and the head and promises published with them.
struct LedgerCopy {
  std::vector<privacy::LedgerEntry> entries;
  Digest head{};  // the last entry's
  privacy::Ledger::Promises promises;

  // The totals that the entries claim, by name, for each learner with entries or a promise.
  std::vector<privacy::LedgerTotal> Learners() const;
  // The delta at which the joint epsilon of all learners is stated: the total budget's, or the
  // largest.
  double TotalDelta() const;
  std::string HeadName() const;  // "sha256:..."
};

// Copies a ledger from a store, a checkpoint, or the operator's listener of a running daemon.
// kCorruption unless it ends at the committed head. VerifyChain checks the chain itself.
Result<LedgerCopy> CopyLedger(const LedgerOptions& options);

}  // namespace tacit::cli
