#pragma once

#include <functional>
#include <memory>

#include "tape/life.h"
#include "wiring/learning.h"

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

// A service at the end of its log, before it stops.
struct Running {
  const Subject& subject;
  const Records& records;
  store::Store& store;
  const stream::Source& source;
  wiring::Learning& learning;
  const train::Progress& progress;
  metrics::Registry& registry;
  const Clock& clock;
  const Result<train::Outcome>& outcome;
};
// Looks at each start's service; may be empty.
using Look = std::function<void(const Running&)>;

// The same life in the product's own store, over a log of files: what each start and each restore
// has shown. Its clock stands still.
Life LiveOnDisk(const Case& tried, const Records& records, const Circumstances& circumstances,
                const Acts& acts, const PlantLearner& plant = {}, const Look& look = {});

}  // namespace tacit::tape
