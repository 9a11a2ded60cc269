#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/ledger/ledger_copy.h"

namespace tacit::cli {

// An older statement of the same ledger, and what has changed since.
struct Comparison {
  std::string file;
  std::string head;                  // the older statement's
  std::string not_in_chain;          // the reason why this ledger does not continue it; else empty
  bool forks_would_show = false;     // also within a run of equal steps
  std::vector<std::string> changes;  // "ctr: steps is 12, and was 7"
};

// Compares a file, which `--format json` has written, with the JSON of the statement of now.
// kCorruption: it is another file, or it was changed.
Result<Comparison> CompareWith(const std::string& path, const std::string& now,
                               const LedgerCopy& ledger);
std::string InWords(const Comparison& compared);
boost::json::object ToJson(const Comparison& compared);

}  // namespace tacit::cli
