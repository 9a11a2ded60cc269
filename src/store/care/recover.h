#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "privacy/ledger.h"

namespace tacit::store {

struct RecoverRequest {
  std::string store;                     // damaged; no process has it open
  std::vector<std::string> checkpoints;  // of the same store, of either kind
  std::optional<Digest> end;             // the ledger head that the witness has seen
};

// A ledger that was put together from pieces: a chain without a gap from the first entry on.
struct RecoveredLedger {
  std::vector<privacy::LedgerEntry> entries;
  bool complete = false;                // it ends with the head that was asked for
  std::vector<std::string> found;       // where entries were found, with their number
  std::vector<std::string> unreadable;  // what could not be read, with the reason
};

// Collects every ledger entry that can be read: of the store's ledger, entry by entry; of the
// deltas that are not folded; of tables that the store's list no longer names; of the checkpoints.
// An entry counts if its head is that of its contents, and the chain is found from its end by the
// heads of the entries before it. Without an end it is the chain that reaches furthest. kNotFound:
// there is no chain. kUnavailable: a process has the store open. kRefused: the store is of another
// format. Changes nothing.
Result<RecoveredLedger> RecoverLedger(const RecoverRequest& request);

}  // namespace tacit::store
