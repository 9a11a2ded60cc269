#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "audit/membership.h"
#include "base/result.h"
#include "lab/audit/audit_parts.h"
#include "wiring/assembly.h"

// A model trained for an audit, as a daemon trains it: with its intake, participation, allowances
// of users, commits and ledger, in a store that is removed afterwards. What is scored is what that
// store serves.
namespace tacit::lab {

struct TrainedModelOptions {
  // Units are users with all their records. (That is what the learner promises, but in a test that
  // plants a fault.)
  bool of_users = false;
  bool reference = false;     // learns from what the reference model does
  uint64_t records_most = 0;  // of the source
  std::function<void(double share)> progress = [](double) {};  // of the records, in steps
  std::function<bool()> stop = {};  // true: end; what is learnt by then is not scored
};

// The ids of the units whose records can be scored: events, users of clicks, and for a model of the
// next item users who took two items or more. REQUIRES one learner, for this and below.
Result<std::vector<uint64_t>> ScorableUnits(const wiring::Assembly& assembly, bool of_users,
                                            uint64_t records_most);

// Trains the learner, and scores the units that `parts` wants scored, each with its id: minus the
// loss of its records in the mean. The loss of a click is the log loss. That of a user's item is
// minus the ln of its share of the softmax over the items that the user has not had before; the
// last kAskedMost items that were not had before are asked about, each after all before it.
// An empty result: it was stopped.
inline constexpr size_t kAskedMost = 20;
Result<std::vector<audit::Score>> TrainAndScore(const wiring::Assembly& assembly,
                                                const AuditParts& parts,
                                                const TrainedModelOptions& options);

}  // namespace tacit::lab
