#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/terms.h"
#include "privacy/ledger.h"
#include "store/checkpoint.h"
#include "store/store.h"

// Makes a store out of a full checkpoint, after the store that it was made of is lost. The lost
// store went on after the checkpoint, and what it learnt then has been served: the restored store
// charges all of that before it learns anything. It has a lineage of its own.
namespace tacit::store {

// A LearnerGap says what a learner did between the checkpoint and the last remembered commit.
struct LearnerGap {
  LearnerIndex learner;
  std::vector<privacy::CommitCharge> charges;  // its steps there; never empty
  std::string position;     // where the lost store stood: nothing before it is read again
  uint64_t step = 0;        // the number of steps in that position
  bool of_users = false;    // every user is charged, also those that the checkpoint does not know
  uint32_t user_steps = 0;  // the most steps that one user can have been in meanwhile
  uint32_t most_uses = 0;   // the most steps that any user had used in the end
  uint64_t period = 0;      // the period that was unfinished in the end
};

struct RestoreRequest {
  std::string checkpoint;  // its folder
  StoreOptions store;      // the store to be; neither witness nor mark is looked at or written
  CommitSeq through;       // the last commit that is remembered
  Digest head{};           // ledger head of that commit
  std::vector<LearnerGap> gaps;  // of the learners that went on; each once
};

struct Restored {
  CheckpointManifest checkpoint;
  std::string lineage;
  CommitSeq commit;               // the store's last one
  double epsilon = 0, delta = 0;  // of all learners together
};

// Works in a folder beside the store, PATH.restoring, and gives it the store's name when all is on
// disk: a crash leaves no store, and the next restore begins anew. Every byte of the checkpoint is
// checked first. The next start takes the lost store's witness, mark and consumer group over.
// kRefused: a store is there, or the checkpoint is a release. kCorruption: the checkpoint is
// damaged.
Result<Restored> RestoreCheckpoint(const RestoreRequest& request);

// A learner as the checkpoint holds it: its gap begins there.
struct CheckpointedLearner {
  std::string name;
  uint64_t steps = 0;    // charged
  std::string position;  // in the trainer's encoding
};
Result<std::vector<CheckpointedLearner>> ReadCheckpointed(const std::string& folder);

}  // namespace tacit::store
