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
#include "store/history.h"
#include "stream/participation.h"

namespace tacit::train {

// What the units (users) of a step did: what is remembered from before it, then what is new in it.
struct StepHistories {
  model::Histories histories;
  std::vector<uint32_t> before;  // per unit: of its items, the first so many are from before
  std::vector<uint64_t> id;      // per unit: who it is, whatever else is in the step

  std::span<const uint32_t> Before(size_t unit) const {
    return histories.Of(unit).first(before[unit]);
  }
  std::span<const uint32_t> New(size_t unit) const {
    return histories.Of(unit).subspan(before[unit]);
  }
};

struct RecentHistoriesOptions {
  uint32_t catalogue = 0;        // items there are
  uint32_t items_most = 0;       // remembered of a user
  int64_t age_most_ms = 0;       // and for how long; 0: for ever
  SipHash::Key user_key{};       // that users are known under
  const Clock* clock = nullptr;  // where there is an age; must outlive the histories
};

// The recent items of users, as of the step under way: what the store has, what steps that are not
// committed yet brought, and what the step brings itself. A record is an item where it names one of
// the catalogue and its label is above 0: what was shown and passed over is none.
//
// Records are remembered once their step is taken; those of a held period with the last of its
// steps, because after a crash a period that is not done is read again. Not thread-safe.
class RecentHistories {
 public:
  // Fills in what each of these users, named by `user`, did as of the learner's last commit or of
  // one before it, and returns that commit's step. Never goes back.
  using Reader = std::function<Result<uint64_t>(std::span<store::UserHistory>)>;

  RecentHistories(RecentHistoriesOptions options, Reader reader)
      : options_(options), hash_(options.user_key), reader_(std::move(reader)) {}

  // Examples of a held period, before its steps.
  void Preview(const stream::StepBatch& batch);
  // The histories of a step's units, in their order.
  Status Gather(const stream::StepBatch& step, StepHistories* out);
  // The step is taken. REQUIRES that it is the one gathered last.
  void Taken(const stream::StepBatch& step);
  // What is to be remembered since the last call; nothing where no step was taken.
  std::optional<store::HistoryCommit> Take();

 private:
  using Items = std::vector<store::HistoryItem>;
  struct Pending {
    uint64_t step = 0;  // that brought it
    store::HistoryItem item;
  };

  // Adds the items of examples [begin, end).
  void AddItems(const event::Batch& examples, size_t begin, size_t end, Items* items) const;
  // Drops what a commit of this step has already.
  void Forget(uint64_t committed);
  void Append(uint64_t step, const Hash128& user, const Items& items);

  const RecentHistoriesOptions options_;
  const SipHash hash_;
  const Reader reader_;

  std::unordered_map<Hash128, Items> period_;  // of the held period
  bool in_period_ = false;                     // its steps have begun
  std::vector<std::pair<Hash128, Items>> gathered_;

  std::unordered_map<Hash128, std::vector<Pending>> pending_;    // taken, maybe not committed
  std::deque<std::pair<uint64_t, std::vector<Hash128>>> steps_;  // who is in pending_, by step
  std::optional<store::HistoryCommit> taken_;
  std::unordered_map<Hash128, size_t> place_;  // of users in taken_
};

}  // namespace tacit::train
