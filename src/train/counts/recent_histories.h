#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/siphash.h"
#include "model/histories.h"
#include "store/types/history.h"
#include "stream/steps/participation.h"

namespace tacit::train {

// Histories of a step's or a period's units (users): the remembered items, then the new ones.
struct StepHistories {
  model::Histories histories;    // a unit's id is the same in every step
  std::vector<uint32_t> before;  // per unit: its items from before the step come first, this many

  size_t units() const { return before.size(); }
  std::span<const uint32_t> Before(size_t unit) const {
    return histories.Of(unit).first(before[unit]);
  }
  std::span<const uint32_t> New(size_t unit) const {
    return histories.Of(unit).subspan(before[unit]);
  }
};

struct RecentHistoriesOptions {
  uint32_t catalogue = 0;        // items in the catalogue
  uint32_t items_most = 0;       // remembered items per user
  int64_t age_most_ms = 0;       // maximum age of a remembered item; 0: no limit
  SipHash::Key user_key{};       // users are stored under this keyed hash
  const Clock* clock = nullptr;  // needed if there is an age; must outlive the histories
};

// The recent items of users, as of the step under way: from the store, from taken steps that are
// not yet committed, and from the step itself. A record counts as an item if it names one of the
// catalogue and its label is above 0: an item shown but passed over does not count.
//
// Records are remembered once their step is taken. Those of a held period are remembered with its
// last step, because after a crash an unfinished period is read again. Not thread-safe.
class RecentHistories {
 public:
  // Fills in the stored history of each user, named by `user`, as of the learner's last commit or
  // an earlier one, and returns that commit's step. The returned step never decreases.
  using Reader = std::function<Result<uint64_t>(std::span<store::UserHistory>)>;

  RecentHistories(RecentHistoriesOptions options, Reader reader)
      : options_(options), hash_(options.user_key), reader_(std::move(reader)) {}

  // Adds examples of a held period, before its steps. Examples that are held out are of no period:
  // returns true with the histories of their units, and remembers them at once.
  Result<bool> Preview(const stream::StepBatch& batch, StepHistories* out);
  // Returns the histories of a step's units, in their order.
  Status Gather(const stream::StepBatch& step, StepHistories* out);
  // Returns the histories of all users of the held period, ascending by their hashes. REQUIRES that
  // the period's previews came and none of its steps was taken since.
  Status GatherPeriod(StepHistories* out);
  // Records that the step is taken. REQUIRES that it is the one gathered last.
  void Taken(const stream::StepBatch& step);
  // The histories to store since the last call; nothing if no step was taken.
  std::optional<store::HistoryCommit> Take();

 private:
  using Items = std::vector<store::HistoryItem>;
  struct Pending {
    uint64_t step = 0;  // the step that brought the item
    store::HistoryItem item;
  };

  // Adds the items of examples [begin, end).
  void AddItems(const event::Batch& examples, size_t begin, size_t end, Items* items) const;
  // Reads what the users did before, and appends their new items.
  Status Read(std::span<const std::pair<Hash128, Items>> users, StepHistories* out);
  // Drops pending items that a commit of this step has stored.
  void Forget(uint64_t committed);
  void Append(uint64_t step, const Hash128& user, const Items& items);

  const RecentHistoriesOptions options_;
  const SipHash hash_;
  const Reader reader_;

  std::unordered_map<Hash128, Items> period_;  // items of the held period, by user
  bool in_period_ = false;                     // the held period's steps have begun
  std::vector<std::pair<Hash128, Items>> gathered_;

  std::unordered_map<Hash128, std::vector<Pending>> pending_;    // taken, maybe not committed
  std::deque<std::pair<uint64_t, std::vector<Hash128>>> steps_;  // users in pending_, by step
  std::optional<store::HistoryCommit> taken_;
  std::unordered_map<Hash128, size_t> place_;  // each user's index in taken_
};

}  // namespace tacit::train
