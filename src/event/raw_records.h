#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "event/bad_record.h"
#include "event/text_column.h"

namespace tacit::event {

// A public fact about the stream, located between two records. Steps and periods may be cut there
// without revealing anything about the records themselves.
struct PublicCut {
  enum class Kind {
    kFileEnd,
    kClockTick,
    kLost,  // records before this one are gone that were unread, or may have to be read again
  };
  Kind kind = Kind::kFileEnd;
  uint64_t offset = 0;  // the cut is before this offset
  std::string name;     // name of the file that ended
};

// A learner's part of the sums of another process, as its bytes.
struct SummedPart {
  LearnerIndex learner;
  std::string bytes;
};

// Records that another process has read and summed up, as it counted them.
struct SummedRecords {
  uint64_t records = 0;  // good or bad
  std::array<uint64_t, kBadParts> dead{};
  uint64_t opted_out = 0;

  uint64_t all_dead() const { return std::accumulate(dead.begin(), dead.end(), uint64_t{0}); }
};

// A run of undecoded records of one partition: offsets first_offset, first_offset + 1, ... A record
// that the source itself could not deliver (too long, unreadable) has empty bytes and a fault.
// Cleared and filled again; keeps its memory.
struct RawRecords {
  struct Fault {
    uint32_t index = 0;
    std::string reason;
    BadPart part = BadPart::kValue;
  };

  int32_t partition = 0;
  uint64_t first_offset = 0;
  std::string origin;         // file name or topic, for messages
  uint64_t origin_line = 0;   // 1-based line of the first record in `origin`; 0: not a file
  std::string bytes;          // records end to end, without separators
  std::vector<uint32_t> end;  // end of each record in `bytes`
  // The times at which the source took the records; empty if the source does not report them.
  std::vector<int64_t> timestamp_ms;
  // The event ids from the headers beside each record (Envelope::event_id); empty if the source has
  // none. An event id in the record itself takes precedence.
  TextColumn event_id;
  std::vector<Fault> faults;    // ascending by index
  std::vector<PublicCut> cuts;  // ascending by offset, in [first_offset, end_offset()]
  // The ranges of a period over several partitions that ends behind these records; empty: no such
  // period ends here.
  std::vector<OffsetRange> period;
  // A part of a period that another process, `origin`, has summed up: a part of each learner that
  // learns from the period, and the records that it read for them. There are no records beside it.
  std::vector<SummedPart> sums;
  SummedRecords summed;
  // Records that another process has summed up too. A frame without records ends them, and has the
  // sums that they are compared with.
  bool recount = false;

  size_t size() const { return end.size(); }
  int64_t TimeOf(size_t i) const { return timestamp_ms.empty() ? 0 : timestamp_ms[i]; }
  std::string_view EventIdOf(size_t i) const { return event_id.empty() ? "" : event_id[i]; }
  uint64_t end_offset() const { return first_offset + end.size(); }
  std::string_view operator[](size_t i) const {
    const uint32_t begin = i == 0 ? 0 : end[i - 1];
    return std::string_view(bytes).substr(begin, end[i] - begin);
  }
  void Clear();
};

}  // namespace tacit::event
