#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/terms.h"
#include "privacy/ledger.h"
#include "store/checkpoint/checkpoint.h"
#include "store/store.h"
#include "store/users/allowance_gap.h"

// Makes a store out of a full checkpoint, or out of an older copy of the store, after its newest
// copy is lost. The lost store went on after that, and what it learnt then has been served: the
// restored store charges all of it before it learns anything. It has a lineage of its own.
namespace tacit::store {

// A LearnerGap says what a learner did between the copy and the last remembered commit. One that
// the copy does not know begins anew there.
struct LearnerGap {
  LearnerIndex learner;
  std::vector<privacy::CommitCharge> charges;  // its steps there; never empty
  // Steps there while other bounds than the configuration's were in force.
  struct Earlier {
    privacy::Bounds bounds;
    std::vector<privacy::CommitCharge> charges;
  };
  std::vector<Earlier> earlier = {};
  std::string position;  // where the lost store stood: nothing before it is read again
  uint64_t step = 0;     // the number of steps in that position
  // Unit user: whom the gap is added to, after RestoreRequest::counts_of was taken over.
  enum class Users {
    kNone,     // nobody: unit event, or the counts that were taken over reach to the end
    kCounted,  // those of `counted`: the gap's records were read again
    kAll,      // everybody, also users whom the copy does not know
  };
  Users users = Users::kNone;
  UsersGap gap;
  std::vector<UserSteps> counted;
};

struct RestoreRequest {
  std::string from;  // a full checkpoint, or a store that no process has open
  // A later copy of the same store whose counts of users are taken over; empty if none.
  std::string counts_of;
  StoreOptions store;  // the store to be; neither witness nor mark is looked at or written
  CommitSeq through;   // the last commit that is remembered
  Digest head{};       // ledger head of that commit
  std::vector<LearnerGap> gaps;  // of the learners that went on; each once
  // Users who asked to be forgotten, from all that is left; a user may be there more than once.
  std::vector<ForgottenUser> forgotten = {};
};

struct Restored {
  std::string from_lineage;
  CommitSeq from_commit;
  std::string lineage;
  CommitSeq commit;               // the store's last one
  double epsilon = 0, delta = 0;  // of all learners together
};

// Works in a folder beside the store, PATH.restoring, and gives it the store's name when all is on
// disk: a crash leaves things as they were, and the next restore begins anew. After a failure the
// folder is removed. A checkpoint must be restored to a free path; every byte of it is checked
// first. An older copy at the store's own path is replaced, and then removed. The next start takes
// the lost store's witness, mark and consumer group over. kRefused: another store is there, or the
// checkpoint is a release. kCorruption: the copy is damaged. kUnavailable: a process has the copy
// open. REQUIRES the lock of the store's path.
Result<Restored> RestoreStore(const RestoreRequest& request);

}  // namespace tacit::store
