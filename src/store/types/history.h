#pragma once

#include <cstdint>
#include <vector>

#include "base/siphash.h"

// Users' recent history: the raw items that a sequence model continues from. No epsilon covers
// them: they are only for training, which bounds and noises them, and for that user's own requests.
namespace tacit::store {

// An item of the public catalogue with its event time.
struct HistoryItem {
  uint32_t item = 0;
  int64_t timestamp_ms = 0;
  friend bool operator==(const HistoryItem&, const HistoryItem&) = default;
};

// One user's items, oldest first; users are identified by the store's keyed hash.
struct UserHistory {
  Hash128 user;
  std::vector<HistoryItem> items;
};

// A user whose history was deleted on request.
struct ForgottenUser {
  Hash128 user;
  int64_t before_ms = 0;  // Unix time of the request: all that is from before it is forgotten
  bool erased = false;    // no file of the store holds any of it
  friend bool operator==(const ForgottenUser&, const ForgottenUser&) = default;
};

// One commit's additions to the histories of a learner's users.
struct HistoryCommit {
  uint64_t step = 0;  // the learner's step that the histories are as of
  // Each user once; items in order. A time of 0 or in the future counts as the commit's.
  std::vector<UserHistory> appended;
  uint32_t items_most = 0;  // only this many last items are kept
  int64_t age_most_ms = 0;  // items older than this are dropped one by one; 0: never
};

}  // namespace tacit::store
