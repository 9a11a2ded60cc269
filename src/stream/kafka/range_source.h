#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "event/envelope.h"
#include "stream/kafka/identity.h"
#include "stream/kafka/source.h"

namespace tacit::stream {

// A range that was read to its end.
struct ReadRange {
  OffsetRange range;
  // The last record up to its begin and up to its end; nothing where none is there any more.
  std::optional<LastRecord> before, last;
  uint64_t empty = 0;  // offsets without a record
};

// Reads ranges of a topic that others have cut, for those who sum them up: each range's records,
// and the record before it. Seek begins with the ranges, and looks at no position; the source
// ends behind them, with a frame that names one range for each partition (RawRecords::period). Poll
// fails where a range is gone, and where the brokers have to be asked anew: then all of it is.
class RangeSource : public Source {
 public:
  // The ranges that the next Seek begins with: not empty, ascending, without overlap.
  virtual void SetRanges(std::vector<OffsetRange> ranges) = 0;
  // The ranges read since Seek. REQUIRES that nobody polls.
  virtual const std::vector<ReadRange>& read() const = 0;
};

// kInvalidArgument: settings are refused. Asks no broker yet. `envelope` may be null; then values
// are payloads. Of the options those about rounds, ticks and the end are not looked at.
Result<std::unique_ptr<RangeSource>> OpenKafkaRanges(KafkaSourceOptions options,
                                                     std::unique_ptr<event::Envelope> envelope);

}  // namespace tacit::stream
