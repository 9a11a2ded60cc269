#pragma once

#include <functional>
#include <memory>

#include "tape/life.h"

namespace tacit::tape {

// The mishaps and acts of an operator in a life on disk.
struct Acts {
  enum class Restore {
    kNone,
    kCheckpoint,
    kOlderCopy,
    kUnnoticed,  // an older copy with its own witness, which nothing tells from the store
  };
  Restore restore = Restore::kNone;  // of a copy that lacks the last file
  bool renames = false;              // the learner, between two files
  bool grows = false;                // a table of its model, between two files
};

// Puts a fault into each start's learner; may be empty.
using PlantLearner =
    std::function<std::unique_ptr<train::Learner>(std::unique_ptr<train::Learner>)>;

// The same life in the product's own store, over a log of files: what each start and each restore
// has shown.
Life LiveOnDisk(const Case& tried, const Records& records, const Circumstances& circumstances,
                const Acts& acts, const PlantLearner& plant = {});

}  // namespace tacit::tape
