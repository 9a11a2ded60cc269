#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "event/raw_records.h"
#include "stream/kafka/identity.h"
#include "stream/source.h"

namespace tacit::stream {

// A topic's period that was cut.
struct SharedPeriod {
  StoreMark store;                         // the commit that it begins at
  std::map<int32_t, LastRecord> before{};  // the last record read of each partition
  uint64_t step = 0;                       // its number
  std::vector<LearnerIndex> learners{};    // that learn from it
  std::vector<OffsetRange> ranges{};       // one a partition; none is empty
  std::vector<OffsetRange> lost{};         // the begins of some: no record is there any more
};

// The next piece of a period.
struct PeriodPiece {
  enum class Kind {
    kNothing,  // nothing yet
    kRanges,   // these ranges are to be read here, one after the other
    kSums,     // a part that another process has summed up
    kEnd,      // all of the period was handed over
  };
  Kind kind = Kind::kNothing;
  std::vector<OffsetRange> ranges{};      // kRanges; and kSums: those that the sums are of
  std::vector<event::SummedPart> sums{};  // kSums: a part of each learner of the period
  std::string from{};                     // kSums: the process, for messages
  event::SummedRecords summed{};          // kSums
  // The ranges are summed up already, and read to be compared; or the sums are those of the ranges
  // before, as another process has them.
  bool recount = false;
};

// Shares a topic's periods out: other processes sum up parts of one, and this process reads the
// rest. The thread that polls the source makes all calls.
class PeriodShare {
 public:
  virtual ~PeriodShare() = default;

  // Begins a period, once the one before it is committed, and forgets that.
  virtual void Begin(SharedPeriod period) = 0;
  // Returns the next piece, or nothing after `timeout`; no ranges while those from before are read.
  // kRefused: nothing may be learnt of the period.
  virtual Result<PeriodPiece> Next(std::chrono::milliseconds timeout) = 0;
  // Says that the ranges of the last piece are read; and the last record in each, if it has one.
  virtual Status HaveRead(const std::vector<std::optional<LastRecord>>& last) = 0;
  // The last record of each partition. REQUIRES that the period has ended.
  virtual std::map<int32_t, LastRecord> Last() const = 0;
};

}  // namespace tacit::stream
