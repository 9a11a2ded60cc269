#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "store/rows/working_rows.h"

namespace tacit::train {

// The rows of a linear learner's weights: threads that sum read them one after the other.
// Thread-safe, as long as no other thread reads while one changes rows.
class LinearRows {
 public:
  // `rows` must outlive it, and be used through it alone.
  explicit LinearRows(store::WorkingRows& rows) : rows_(rows) {}

  // Calls each(i, floats) for every row of `wanted` (ascending and distinct), gathered a few at a
  // time; `change` says that it writes them.
  template <class Each>
  Status ForEach(std::span<const uint64_t> wanted, bool change, const Each& each) {
    constexpr size_t kGatherMost = 1 << 14;
    std::vector<float*> pointers;
    const MutexLock lock(mutex_);
    for (size_t begin = 0; begin < wanted.size(); begin += kGatherMost) {
      const auto some = wanted.subspan(begin, std::min(kGatherMost, wanted.size() - begin));
      pointers.resize(some.size());
      TACIT_RETURN_IF_ERROR(rows_.Gather(some, pointers));
      for (size_t i = 0; i < some.size(); ++i) each(begin + i, pointers[i]);
      if (change) rows_.MarkChanged(some);
    }
    return {};
  }

 private:
  Mutex mutex_;
  store::WorkingRows& rows_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::train
