#pragma once

#include <cstdint>
#include <vector>

#include "base/siphash.h"

// What users did last: the raw items that a model of sequences goes on from. Not covered by any
// epsilon: for training, which bounds and noises it, and for that user's own eyes.
namespace tacit::store {

// An item of the public catalogue and when it was met with.
struct HistoryItem {
  uint32_t item = 0;
  int64_t timestamp_ms = 0;
  friend bool operator==(const HistoryItem&, const HistoryItem&) = default;
};

// One user's items, oldest first; the user under the store's keyed hash.
struct UserHistory {
  Hash128 user;
  std::vector<HistoryItem> items;
};

// What one commit appends to the histories of a learner's users.
struct HistoryCommit {
  uint64_t step = 0;  // the learner's, as of which histories are then
  // Each user once; items in their order. A time of 0, or to come, is taken for the commit's.
  std::vector<UserHistory> appended;
  uint32_t items_most = 0;  // the last ones are kept
  int64_t age_most_ms = 0;  // what is older is forgotten, item by item; 0: never
};

}  // namespace tacit::store
