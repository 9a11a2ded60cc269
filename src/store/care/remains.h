#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/siphash.h"
#include "base/terms.h"
#include "privacy/ledger.h"
#include "store/types/history.h"

// Reads what a folder still tells of a store that is lost: a damaged store, an older copy of it, or
// a checkpoint of either kind. A restore charges by it.
namespace tacit::store {

struct RemainingLearner {
  std::string name;
  uint64_t steps = 0;    // charged
  std::string position;  // in the trainer's encoding; empty in a release
};

struct Remains {
  std::string folder;
  bool release = false;  // a release checkpoint: no positions, no users
  std::string lineage;
  CommitSeq commit;  // all of this is as of this commit
  Digest head{};     // the ledger's
  Terms terms;
  std::vector<privacy::LedgerEntry> entries;
  std::vector<RemainingLearner> learners;
  std::string source_identity;
  SipHash::Key user_key{};  // secret; zero in a release
  // Users who asked to be forgotten, as far as this folder knows; in a checkpoint also those that
  // its manifest lists.
  std::vector<ForgottenUser> forgotten = {};
  std::string users_damage;  // if empty, all allowances can be read
};

// Reads a store that no process has open, or a checkpoint, in which rows and deltas may be damaged.
// After damage in a store's log the commit is one before it. kCorruption: the ledger itself cannot
// be read. kUnavailable: a process has the store open. kNotFound: there is neither.
Result<Remains> ReadRemains(const std::string& folder);

}  // namespace tacit::store
