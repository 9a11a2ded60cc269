#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/terms.h"
#include "base/user_uses.h"
#include "privacy/anchor.h"
#include "privacy/ledger.h"

namespace tacit::cli {

struct LedgerOptions;

// A ledger as seen from outside: its entries, and the head and promises published with them.
struct LedgerCopy {
  std::vector<privacy::LedgerEntry> entries;
  Digest head{};  // the last entry's
  privacy::Ledger::Promises promises;
  // All learners together, where the ledger's own account of it is at hand: from a store.
  std::optional<privacy::LedgerTotal> total = std::nullopt;
  bool witnessed = false;  // it was held to a witness
  // Counts a learner's users by what they have used; empty for a daemon's ledger.
  std::function<Result<UsersByUses>(std::string_view learner)> count_users = {};
  // The store's, as far as the place tells them.
  std::string lineage = {};
  std::optional<CommitSeq> last = std::nullopt;
  TermId term = kNoTerm;  // of the last commit
  std::optional<Terms> terms = std::nullopt;
  std::vector<Ancestor> ancestors = {};

  // The totals that the entries claim, by name, for each learner with entries or a promise.
  std::vector<privacy::LedgerTotal> Learners() const;
  // The delta at which the joint epsilon of all learners is stated: the total budget's, or the
  // largest.
  double TotalDelta() const;
  // The ledger as anchors are held against it. Valid as long as the copy.
  privacy::AnchoredLedger ForAnchors() const;
  std::string HeadName() const;  // "sha256:..."
};

// The ledger as JSON: what a daemon's /v1/ledger answers, on one page.
std::string ToPage(const LedgerCopy& ledger);

// Copies a ledger from a store, a checkpoint, a file with such a page, or the operator's listener
// of a running daemon.
// kCorruption unless it ends at the committed head. VerifyChain checks the chain itself.
Result<LedgerCopy> CopyLedger(const LedgerOptions& options);

}  // namespace tacit::cli
