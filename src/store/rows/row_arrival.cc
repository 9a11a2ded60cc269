#include "store/rows/row_arrival.h"

#include <utility>

namespace tacit::store {

Status RowArrival::Complete() {
  const MutexLock lock(mutex_);
  if (bring_ != nullptr) outcome_ = std::exchange(bring_, nullptr)(&rows_);
  return outcome_;
}

Status Arrive(const RowDelta& delta) {
  return delta.arrival != nullptr ? delta.arrival->Complete() : Status{};
}

}  // namespace tacit::store
