#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "lab/audit/audit_parts.h"
#include "lab/audit/audit_run.h"

// Audits from outside: a learner of a configuration is trained on a part of its own source's units
// (records, or users with all of theirs), and its losses say what they can of which part that was.
namespace tacit::lab {

struct TrainedAuditOptions {
  std::vector<std::string> learners;  // ids; if empty, all
  TrainedAudit kind = TrainedAudit::kMembership;
  // Each learner is trained for each of these; infinite: without privacy. If empty, as configured.
  std::vector<double> epsilons;
  uint64_t canaries = 1000;  // kOneRun
  // Units guessed, those farthest out; fixed before anything is trained. 0: a tenth.
  uint64_t guesses = 0;
  uint64_t records_most = 1'000'000;  // of the source
  uint64_t seed = 1;                  // of the hash
  double alpha = 0.05;                // the probability with which any bound of the report is false
  uint32_t workers = 2;
  // Keeps the scores of each model trained, a JSON line each; if empty, they are not kept.
  std::string state = {};
  std::string key = {};  // the configuration in any form; the scores of another one are refused
  bool show_progress = false;
  std::function<bool()> stop = {};  // true: end after the model that is being trained
  // Loads the configuration with further overrides.
  std::function<Result<config::Config>(const std::vector<std::string>& overrides)> load = {};
};

// The rows of the report say what is charged, proved and seen as those of white-box audits do.
// kInvalidArgument where the source has too few records.
Result<AuditReport> RunTrainedAudits(const TrainedAuditOptions& options);

}  // namespace tacit::lab
