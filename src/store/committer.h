#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "privacy/ledger.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "store/types/snapshot.h"

namespace tacit::store {

// The store as the trainer sees it: it takes commits, and says what one more would cost. As
// thread-safe as the store.
class Committer {
 public:
  virtual ~Committer() = default;

  virtual WorkingRows& working_rows(LearnerIndex learner) = 0;

  // Epsilons for the budget check, counting all enqueued commits: a learner's once these charges of
  // it are added, and that of all learners together once these charges of any are added (at
  // `delta`, or else at the total budget's, or else at the largest of the learners'). See
  // privacy::Ledger.
  virtual double EpsilonAfter(std::span<const privacy::CommitCharge> charges) const = 0;
  virtual double TotalEpsilonAfter(std::span<const privacy::CommitCharge> charges,
                                   std::optional<Delta> delta = std::nullopt) const = 0;

  // Passes a commit to the commit thread; waits while another is in flight. `done` (may be empty)
  // is called on the commit thread after the witness is written and the snapshot published, or with
  // the failure; it must not call Commit or Flush. After a failure every later commit fails at
  // once: this call returns the failure and does not call `done`. Only the trainer may call this.
  // REQUIRES that a learner's rows come from its TakeDelta, in order.
  virtual Status Commit(CommitRequest request, std::function<void(Status)> done) = 0;
  // Waits until every enqueued commit is published or has failed.
  virtual Status Flush() = 0;

  // The last published snapshot; never null (version 0 before the first commit).
  virtual std::shared_ptr<const Snapshot> Latest() const = 0;

  struct Stats {
    uint64_t commits = 0, commit_bytes = 0, folded_rows = 0, unfolded_deltas = 0;
    double last_commit_ms = 0;
    uint64_t outbox_bytes = 0;    // of folded deltas that are kept
    uint64_t witnesses_lost = 0;  // times the witness or mark was removed while open, and rewritten
  };
  virtual Stats stats() const = 0;
};

}  // namespace tacit::store
