#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "privacy/ledger.h"
#include "store/disk/damage.h"

namespace tacit::store {

struct StoreCheck {
  uint64_t files = 0, bytes = 0;  // tables that were read
  uint64_t commits = 0, ledger_entries = 0, users = 0;
  bool witnessed = false;
  std::vector<Damage> damage;  // if empty, all is right
};

struct VerifyOptions {
  std::string witness;  // if empty, none is looked at
  // Checks the entries themselves; the store knows their links alone. May be empty.
  std::function<Status(const std::vector<privacy::LedgerEntry>&)> check_entries = {};
};

// Reads every byte of a store that no process has open: logs and list of tables record by record,
// tables and blobs against the SHA-256 that they were written with, every value against its own
// checksum, the links between the ledger, the deltas and the rows, and what the witness has seen.
// Changes nothing. kNotFound: there is no store. kUnavailable: a process has it open.
Result<StoreCheck> VerifyStore(const std::string& path, const VerifyOptions& options);

}  // namespace tacit::store
