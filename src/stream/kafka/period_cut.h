#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

// Periods over all partitions of a topic at once: of the offsets that are there, the oldest by the
// records' timestamps come into the period that is next.
namespace tacit::stream {

// A period has at most this many offsets: the grid of a summed release holds that many units of
// full length.
inline constexpr uint64_t kPeriodOffsetsMost = uint64_t{1} << 30;

// A topic's answers about timestamps: its brokers', or a list's in a test.
class OffsetsByTime {
 public:
  virtual ~OffsetsByTime() = default;
  // Returns, for each range, the first offset of its partition whose record has a timestamp of at
  // least `time_ms`, or the range's end if no record has one. kUnavailable: ask again.
  virtual Result<std::vector<uint64_t>> FirstFrom(int64_t time_ms,
                                                  std::span<const OffsetRange> ranges) = 0;
};

// Timestamps from 0 to this one, in the year 2109, tell records apart; earlier ones are alike, and
// so are later ones.
inline constexpr int64_t kPeriodTimeMost = int64_t{1} << 42;
// The questions of one cut: halving the times down to one millisecond takes no more.
inline constexpr int kPeriodQuestionsMost = 42;

// Cuts the next period out of `there`: for each partition the offsets from the period before to the
// end as it is known. A period has exactly `offsets` of them. T is the first millisecond before
// which there are `offsets` of them or more. All records before T - 1 are in the period, and the
// rest comes from each partition's records of T - 1 in proportion to their number, largest
// remainders first. It returns one range a partition, empty ones too, in the order of `there`.
//
// If fewer are there, it returns all of them if `closes`, and nullopt if more are to come.
//
// It reads offsets, timestamps and the caller's clock, which are public, and never contents; it is
// a function of these alone. Fails as `times` does.
Result<std::optional<std::vector<OffsetRange>>> CutPeriod(std::span<const OffsetRange> there,
                                                          uint64_t offsets, bool closes,
                                                          OffsetsByTime& times);

}  // namespace tacit::stream
