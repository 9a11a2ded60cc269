#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "store/types/delta.h"

namespace tacit::store {

// The trainer's rows: a cache in front of the store that also holds uncommitted rows. Bounded by
// bytes; changed rows stay until their delta is folded. Belongs to the trainer thread.
class WorkingRows {
 public:
  virtual ~WorkingRows() = default;

  // Says which rows (any order, with repeats) a Gather will want soon, so that they may be read
  // while others are worked on. It changes no row and no answer. The last two announcements count:
  // one for the step that comes next, and one for the step after that.
  virtual void Announce(std::span<const uint64_t>) {}
  // Returns pointers to the floats (embedding, then optimiser state) of these rows, ascending and
  // distinct; valid until the next Gather or Announce. Rows not in memory are read from the store
  // in one sorted MultiGet, or get their initial value.
  virtual Status Gather(std::span<const uint64_t> rows, std::span<float*> out) = 0;
  // Records that these rows (of the last Gather, by row id, ascending) were changed in place.
  virtual void MarkChanged(std::span<const uint64_t> rows) = 0;
  // Says that these rows (embedding and state) were changed elsewhere, over what is here. They go
  // into the next delta, and are what a later Gather finds. They are fetched at first use, and
  // not by this call; `arrival` must live until then. A row that is to be marked as changed is
  // gathered anew after this call.
  virtual Status Expect(const std::shared_ptr<RowArrival>& arrival);
  // Says that few rows or none will be gathered from here on, so that memory may be given back. It
  // changes no row and no answer.
  virtual void Release() {}
  // Takes every row changed since the last call, for the next commit. After this call the rows stay
  // pinned until the store has folded that commit. Expected rows may still be on their way: Arrive
  // (row_arrival.h) comes before the first look into the delta.
  virtual std::shared_ptr<const RowDelta> TakeDelta() = 0;

  struct Stats {
    uint64_t hits = 0, misses = 0, evictions = 0, bytes = 0, pinned_rows = 0;
    uint64_t read_ahead = 0;  // misses whose row was announced
  };
  virtual Stats stats() const = 0;
};

}  // namespace tacit::store
