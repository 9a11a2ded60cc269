#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "stream/kafka/identity.h"
#include "workers/records.h"
#include "workers/seal.h"
#include "workers/slices.h"

namespace tacit::workers {

// A period that is to be summed.
struct Period {
  Digest head{}, build{};
  Ranges ranges;  // at most one a partition
  // The last record read of each partition; of a new partition nothing.
  std::map<int32_t, stream::LastRecord> before;
  // Says what is wrong with a body's sums, before it counts; if empty, nothing can be.
  std::function<Status(const Body&)> check = {};
};

// The fate of a message.
enum class Outcome : uint8_t {
  kPart,     // a chunk of a body that is not whole yet, or that was forgotten
  kCounted,  // a whole body: its ranges are covered from now on
  kCovered,  // a range of it was covered before: a copy
  // A copy of other records: some were deleted, or compacted away, between the two readings; or of
  // the same, of which one worker knew schemas that the other did not know.
  kOtherRecords,
  kOldHead,     // of another period
  kOtherBuild,  // of a worker that another program or configuration runs
  kUnsealed,    // does not open
  kRefused,     // no chunk or body of this period
  kNoRoom,      // a body of more bytes than are held, or than others that are not whole leave
  kOtherTopic,  // its records do not follow those beside them: it was read from another topic
  kDiffers,     // a copy with other sums of the same records: one of the two workers is wrong
};

struct Taken {
  Outcome outcome = Outcome::kRefused;
  std::string why;  // for a log; empty with kPart, kCounted, kCovered, kOldHead
  Body body;        // with kCounted
};

// Takes the sums of a period, in any order and as often as they come, until each of its offsets is
// in exactly one body that counts. A body counts whole or not at all. Bodies that count are handed
// on at once; the collector holds only chunks of bodies that are not whole, `held_bytes_most` of
// them: where there is no room it forgets the body of which the fewest bytes are here, so that the
// others become whole. What still comes of it from its sender is dropped. Not thread-safe.
class Collector {
 public:
  Collector(const SharedKey& key, uint64_t held_bytes_most)
      : key_(key), held_bytes_most_(held_bytes_most) {}

  // Forgets the period before.
  void Begin(Period period);

  // Takes a chunk. REQUIRES Begin, and a record with a place.
  Taken Take(const SealedRecord& record);
  // This process sums these ranges itself: no message that meets them counts from now on. REQUIRES
  // Begin, and ranges in Gaps().
  void Claim(const Ranges& ranges);
  // Takes ranges that were claimed, and are summed: kCounted, or kOtherTopic. Their records need
  // not follow those before them, which this process need not have seen: `before` is not read. The
  // record that a range behind them follows may be gone by now: then they end before it.
  Taken TakeOwn(const std::vector<SummedRange>& ranges);

  // The workers whose bodies the last Take forgot for want of room beside the one that it took.
  const std::vector<std::string>& forgotten() const { return forgotten_; }
  bool complete() const { return covered_offsets_ == CountOffsets(period_.ranges); }
  // Returns what is not covered.
  Ranges Gaps() const;
  // Returns the last record of each partition, as the next period begins at. REQUIRES complete().
  std::map<int32_t, stream::LastRecord> Last() const;

 private:
  struct Held {
    std::string worker;               // that has sent the first chunk
    uint64_t bytes = 0;               // of the body
    std::vector<std::string> pieces;  // by chunk; empty: not here yet
    size_t missing = 0;
    uint64_t here = 0;  // bytes of the pieces that are here
  };
  struct Counted {
    BodyName name{};
    std::string worker{};
    std::vector<SummedRange> ranges{};
    bool own = false;
  };
  struct Covered {
    SummedRange summed;
    size_t body = 0;  // of counted_
  };
  using CoveredPlace = std::pair<int32_t, uint64_t>;  // partition and begin

  // Adds a piece. Returns the body once it is whole, else an empty text.
  Result<std::string> Add(const std::string& worker, const ChunkPlace& place, std::string piece);
  void Forget(std::map<BodyName, Held>::iterator held);
  Taken Count(const std::string& worker, const BodyName& name, Body body);
  // Covers the body's ranges, or says which of their records do not follow each other.
  std::string Cover(Counted body);
  // Returns the range of the period that this one lies in, or null.
  const OffsetRange* Around(const OffsetRange& range) const;
  // Returns a covered range that meets this one, or null.
  const Covered* Meets(const OffsetRange& range) const;
  // Says which records do not follow each other, if the range were covered; or nothing.
  std::string BrokenChain(const SummedRange& summed, bool own) const;

  const SharedKey key_;
  const uint64_t held_bytes_most_;
  Period period_;
  std::optional<PeriodSeal> seal_;
  std::map<BodyName, Held> held_;
  uint64_t held_bytes_ = 0;
  std::vector<std::string> forgotten_;
  std::set<std::pair<std::string, BodyName>> dropped_;  // bodies, by worker, that had no room
  std::vector<Counted> counted_;
  std::map<CoveredPlace, Covered> covered_;
  Ranges claimed_;
  uint64_t covered_offsets_ = 0;
};

}  // namespace tacit::workers
