#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacit::cli {

// A row of what `tacit audit --json` has printed.
struct StatedAudit {
  std::string file, learner, kind;
  uint64_t runs = 0;
  double delta = 0;
  std::optional<double> charged;  // epsilon; nothing if it is unbounded
  double proved = 0;              // epsilon that the attack proves at least
  double confidence = 0;          // of all rows of the file together
  bool exceeds = false;           // more is proved than was charged
  std::string made_by;            // the version that audited; if empty, an earlier one
};

// kInvalidArgument: the file is none that `tacit audit --json` has printed, or its audit was
// stopped before its end.
Result<std::vector<StatedAudit>> ReadAudits(const std::string& path);

// "white-box audit of ctr: 2,000 runs prove an epsilon of at least 3.1 of the 8 charged".
std::string InWords(const StatedAudit& audit);

}  // namespace tacit::cli
