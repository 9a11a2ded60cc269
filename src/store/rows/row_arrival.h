#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "store/types/delta.h"

namespace tacit::store {

// Rows come home in pieces of this many, where the longest of them has `stride` floats.
constexpr uint64_t ArrivalPieceRows(uint64_t rows, uint64_t stride) {
  constexpr uint64_t kPieceFloats = uint64_t{1} << 20;
  return std::min(std::max<uint64_t>(kPieceFloats / stride, 1), std::max<uint64_t>(rows, 1));
}

// The pinned memory that the way home of these rows takes at most: two pieces with the rows'
// numbers, one piece of rows that go home within the commit, and two numbers that the host looks
// at.
constexpr uint64_t ArrivalPinnedBytes(uint64_t rows, uint64_t stride) {
  return 4 * (ArrivalPieceRows(rows, stride) * (2 * (stride + 1) + stride) + 2);
}

// The pinned memory through which such rows come home from a cache, and `of_step` of them at most
// go there: a piece each way.
constexpr uint64_t CachePinnedBytes(uint64_t rows, uint64_t of_step, uint64_t stride) {
  return 4 * (ArrivalPieceRows(rows, stride) + ArrivalPieceRows(of_step, stride)) * stride;
}

// Rows that were changed elsewhere, in a GPU's memory, and come home while the next steps run. They
// are the rows as of one step. The first thread that needs them brings them. So nobody waits
// for rows that nobody has begun to bring. Thread-safe.
class RowArrival {
 public:
  // Fills in the rows that were changed, ascending. It is called once at most, by any thread.
  using Bring = std::function<Status(RowDelta*)>;

  explicit RowArrival(Bring bring) : bring_(std::move(bring)) { rows_.arrival = this; }
  RowArrival(const RowArrival&) = delete;
  RowArrival& operator=(const RowArrival&) = delete;

  // Brings the rows, unless a call before has. Every call has the outcome of the first.
  Status Complete();
  // The rows. REQUIRES, before anybody reads them, that Complete succeeded.
  static std::shared_ptr<const RowDelta> Rows(const std::shared_ptr<RowArrival>& arrival) {
    return {arrival, &arrival->rows_};
  }

 private:
  Mutex mutex_;                           // held while the rows come
  Bring bring_ TACIT_GUARDED_BY(mutex_);  // null once it was called
  Status outcome_ TACIT_GUARDED_BY(mutex_);
  RowDelta rows_;
};

// Waits for a delta's rows, where they are on their way. Nothing of a delta may be read before.
Status Arrive(const RowDelta& delta);

}  // namespace tacit::store
