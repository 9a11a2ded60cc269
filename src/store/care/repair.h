#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/care/verify.h"

namespace tacit::store {

struct Repair {
  std::vector<std::string> done;  // what was dropped or made anew; if empty, nothing had to be
  StoreCheck after;               // without damage
};

// Drops or makes anew what follows from the rest of a store that no process has open: the file
// CURRENT, where one list of tables is there and is whole; the most steps that users have used,
// which their counts tell; the last known time, which the ledger tells; what an interrupted fold
// left. Then it verifies the store. kCorruption: something else is damaged, which nothing in the
// store tells; then nothing is dropped. kUnavailable: a process has the store open.
Result<Repair> RepairStore(const std::string& path, const VerifyOptions& options);

}  // namespace tacit::store
