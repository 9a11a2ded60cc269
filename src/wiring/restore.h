#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "store/restore.h"
#include "store/witness_record.h"
#include "wiring/assembly.h"

// Restores a store that is lost from a checkpoint: finds out what was learnt after the checkpoint,
// from what was remembered outside the store, and has that charged.
namespace tacit::wiring {

// Says what the lost commits cost at most: the steps between the checkpoint and the remembered
// commit, each at the configuration's price, and with `poisson` an opening for each period that
// they may have begun. `topic` is the source's name for its records. Nothing if there was no step.
// kRefused: the learner's promise or price has changed, or too little is remembered to say what it
// cost.
Result<std::optional<store::LearnerGap>> FindGap(const LearnerPlan& plan,
                                                 const config::Learner& learner,
                                                 const store::CheckpointedLearner& from,
                                                 const store::WitnessedLearner& to,
                                                 const std::string& topic);

struct RestoreReport {
  store::Restored restored;
  std::string remembered_by;  // the path of the witness or mark
  CommitSeq through;          // its commit, up to which everything is charged
  std::vector<store::LearnerGap> gaps;
};
// Makes the configuration's store out of the checkpoint in `folder`. kRefused: there is no witness
// and no mark of the lost store, or they are older than the checkpoint.
Result<RestoreReport> RestoreStore(const Assembly& assembly, const std::string& folder);

}  // namespace tacit::wiring
