#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "event/codec.h"
#include "event/raw_records.h"

namespace tacit::train {

// A window of the breaker, all of whose records were read.
struct WindowEnd {
  std::vector<OffsetRange> ranges;
  // Its records that could not be learnt from. As private as the records: only the breaker looks at
  // it.
  uint64_t unreadable = 0;

  uint64_t offsets() const {
    uint64_t offsets = 0;
    for (const OffsetRange& range : ranges) offsets += range.size();
    return offsets;
  }
};

// Counts the records of each window that could not be learnt from. A window is the next `window`
// offsets of a partition, for any content and any learner, so that each record
// is in one window, and a record more or less moves one count, by one. Knows the open window of
// each partition; a partition's first one begins where it is first read. Not thread-safe.
class WindowCounter {
 public:
  // `next`: where the open windows begin, of the partitions that had one before. REQUIRES a window
  // of at least one offset.
  WindowCounter(uint64_t window, std::span<const OffsetRange> next);

  // Takes the records of a partition from `from` to `*to`, or to the end of its open window where
  // that is before; `*to` is then that end. Returns the window if it ends there. Records before the
  // open window belong to one that was decided, and are not counted. A window whose last offsets do
  // not come is never decided. REQUIRES a partition's records
  // in order, and each letter in [from, *to) in `dead`, in any order.
  std::optional<WindowEnd> Take(int32_t partition, uint64_t from, uint64_t* to,
                                std::span<const event::DeadLetter> dead);

 private:
  struct Open {
    uint64_t begin = 0, unreadable = 0;
  };

  const uint64_t window_;
  std::map<int32_t, Open> open_;  // by partition
};

// Counts the same of each period over all partitions: a window is a period, without the offsets
// that a window before has had. So a record is in one window, and a period that is read again is
// none. Records that another process has summed up are counted as it says: one each, since its
// message accounts for each offset once. Not thread-safe.
class PeriodCounter {
 public:
  // `next`: the ends of the windows before, of the partitions that had one.
  explicit PeriodCounter(std::span<const OffsetRange> next);

  // Takes records of the period, with their letters in any order; or those of another process's
  // sums. REQUIRES of these that the period goes over no window's end.
  void Take(const event::RawRecords& records, std::span<const event::DeadLetter> dead);
  // Ends the period of these ranges; returns nothing if windows before have had it.
  std::optional<WindowEnd> End(std::span<const OffsetRange> period);

 private:
  std::map<int32_t, uint64_t> begins_;  // the next window's, by partition
  uint64_t unreadable_ = 0;
};

}  // namespace tacit::train
