#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/membership.h"
#include "audit/one_run.h"
#include "base/result.h"
#include "privacy/ledger.h"

// Membership inference on a trained model, and one-run bounds, from scores that were made
// elsewhere.
namespace tacit::lab {

// The lines of a file: {"id":7,"member":true,"score":-0.31[,"reference":-0.35]}. The score is large
// where the record seems to have been learnt from (minus its loss); with a reference on every line
// it is less that, the same of a model that has not seen the record. Errors name file and line.
Result<std::vector<audit::Score>> ReadScores(const std::string& path);

struct ScoreAudit {
  uint64_t members = 0, others = 0;
  privacy::LedgerTotal charged;
  bool gaussian = true;  // so is what is charged for
  // Seen, without confidence.
  double area = 0, accuracy = 0, found_1_in_100 = 0, found_1_in_1000 = 0;
  // By halves of the records: mu is above it.
  audit::SplitBound split;
  // By guesses in one run; none where the members are too many or too few for fair coins.
  struct OneRun {
    audit::Guesses guesses;
    double epsilon = 0;  // Steinke, at the charge's delta
    // The epsilon of the Gaussian curves that are refuted, at the same: a bound where the charge is
    // such a curve (a curve through the same epsilon and delta may let more guesses be right).
    double epsilon_curve = 0;
    std::optional<double> xiang_mu = {};  // told alone: it assumes what it says
  };
  std::optional<OneRun> one_run;
  double alpha = 0;  // of all bounds together

  // More is proved in one run than is charged.
  bool exceeds() const;
};

// Guesses the `guesses` records whose scores are farthest out, the upper half of them as members;
// 0: all records. `gaussian`: what is charged for are Gaussians alone, unsampled. kInvalidArgument
// for scores of one kind, or more guesses than records.
Result<ScoreAudit> AuditScores(const std::vector<audit::Score>& scores, uint64_t guesses,
                               const privacy::LedgerTotal& charged, double alpha,
                               bool gaussian = true);

boost::json::object ToJson(const ScoreAudit& audit);
std::string ToText(const ScoreAudit& audit);

}  // namespace tacit::lab
