#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/types/learner_layout.h"

// A model whose configuration has changed goes on: features that are new begin at nothing, tables
// become larger, and what is gone is dropped. The learner's kind says what becomes of its tables
// and parameters; the store takes that over in one commit, with an entry in the ledger, which
// charges nothing: no record is looked at.
namespace tacit::store {

// A learner whose model a start would take over.
struct Growth {
  std::string learner;
  std::vector<std::string> gained, lost;
};

// Tells what the next start with these learners would take over, of a store that is read as it is
// and not changed. kRefused: some learner cannot be taken over.
// `renames`: as StoreOptions has them; kInvalidArgument: one of them is of no learner, or to a name
// that another learner has.
Result<std::vector<Growth>> PlanGrowth(const std::string& path,
                                       const std::vector<LearnerLayout>& learners,
                                       const std::map<std::string, std::string>& renames = {});

}  // namespace tacit::store
