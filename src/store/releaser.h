#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "base/terms.h"
#include "store/checkpoint/released.h"
#include "store/types/snapshot.h"

namespace tacit::store {

// The part of the last published commit that may be shown to anybody. Any method may be called from
// any thread.
class Releaser {
 public:
  virtual ~Releaser() = default;

  // The last published snapshot; never null.
  virtual std::shared_ptr<const Snapshot> Latest() const = 0;
  // The terms of all published commits.
  virtual Terms terms() const = 0;
  virtual Result<Release> LatestRelease() const = 0;
  // Shows the rows that commits after `since` have changed, as of the release, each once and in no
  // order; without `since` all that were ever written. Returns false, and has shown none, where the
  // deltas since then are not all there any more: then all have to be read. A failure of `each`
  // ends it.
  virtual Result<bool> ForReleasedRows(const Release& release, std::optional<CommitSeq> since,
                                       const EachReleasedRow& each) const = 0;
  // Shows all rows of one learner that were ever written, as of the release.
  virtual Status ForReleasedRowsOf(const Release& release, uint16_t learner,
                                   const EachReleasedRow& each) const = 0;
  // Lets the deltas of commits up to this one go.
  virtual void TakenFromOutbox(CommitSeq seq) = 0;
};

}  // namespace tacit::store
