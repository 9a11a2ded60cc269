#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/terms.h"
#include "event/raw_records.h"
#include "stream/step_sizes.h"

namespace tacit::stream {

// The records that a source with files delivers at once, at most.
inline constexpr uint64_t kRecordsPerPoll = 4096;

struct PartitionOffset {
  static constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();

  int32_t partition = 0;
  uint64_t offset = 0;  // the next record to read; kNowhere: no learner has read here
  // Read from the first record there is, for a learner that has not read the partition yet;
  // `offset` is then the position of the other learners, and must exist too.
  bool from_beginning = false;
  // Also deliver this many records before `offset`, if they still exist; deduplication needs them.
  uint64_t before = 0;
  // Records before this offset come before those of other partitions, where the source can choose:
  // a learner has begun a period that ends there. 0: none do.
  uint64_t first_until = 0;

  // The offset at which reading begins; 0 for from_beginning, so only for sources that begin at 0.
  uint64_t first() const { return from_beginning ? 0 : offset - std::min(before, offset); }
};

// A store's progress, as it is written where others may see how far the store has read.
struct StoreMark {
  std::string lineage;
  uint64_t sequence = 0;  // of its last commit
  std::string head;       // of its ledger then, in hexadecimal
  std::string term = {};  // of that commit, in hexadecimal; if empty, it has no commits
  friend bool operator==(const StoreMark&, const StoreMark&) = default;
};

// A mark with the store's terms, which tell its own earlier marks from those of a copy that
// diverged.
struct StoreClaim {
  StoreClaim(StoreMark mark, Terms history = {},  // NOLINT: a mark is a claim of little history
             std::vector<Ancestor> lost = {})
      : now(std::move(mark)), terms(std::move(history)), ancestors(std::move(lost)) {}

  StoreMark now;
  Terms terms;
  std::vector<Ancestor> ancestors;  // lost stores that this one was restored for
};

struct SourceHealth {
  bool connected = true;
  std::string alert;  // for the operator; empty if no problem
};

// The periods that a source cuts over all its partitions, for all learners.
struct TopicPeriods {
  StepSizes sizes;
  uint64_t next = 0;  // the number of the next one, of the learner that is furthest back
  // A learner, and its place: a range a partition, which begins there. It begins with a partition
  // that the place lacks.
  struct Member {
    LearnerIndex learner;
    std::vector<OffsetRange> place;
  };
  // Those that learn at the start. No period goes over a place: who is ahead has each period before
  // its place behind it, and none in part.
  std::vector<Member> learners;
  std::vector<OffsetRange> windows{};  // the place of the breaker; empty without one
  // Tells whether a learner still learns; if empty, all do. Thread-safe.
  std::function<bool(LearnerIndex)> learns = {};
};

enum class PollOutcome {
  kRecords,  // `records` holds at least one record or cut
  kNothing,  // none within the timeout; more may come
  kEnd,      // a source with an end (log files) has delivered everything
};

// A source of interactions: log files, the generator, Kafka. Records of a partition come in offset
// order, each exactly once between two Seeks; the offset of a record never changes. One thread
// polls, pauses and seeks; not thread-safe.
class Source {
 public:
  virtual ~Source() = default;

  // The name of the records in ledger ranges, the same for the same records: topic id or log name.
  virtual std::string topic() const = 0;
  virtual std::vector<int32_t> partitions() const = 0;

  // Replaces `records` with the next run of records of one partition.
  virtual Result<PollOutcome> Poll(std::chrono::milliseconds timeout,
                                   event::RawRecords* records) = 0;
  // Continues from these positions; partitions that are not named are read from their beginning.
  // Fails, naming the offset, if a position cannot be reached or the records before it are not
  // those that were read (a changed file). A source that is out of reach checks this later, and
  // then Poll fails.
  virtual Status Seek(std::span<const PartitionOffset> positions) = 0;
  // Applies back-pressure: a paused partition delivers nothing until resumed.
  virtual void Pause(std::span<const int32_t> partitions) = 0;
  virtual void Resume(std::span<const int32_t> partitions) = 0;
  // Declares which store reads, before the first Seek. Seek refuses if another store has read, or a
  // copy of this one that is newer or has diverged.
  virtual void Claim(const StoreClaim&) {}
  // Declares, before the first Seek, that the source cuts periods over all its partitions; then
  // each ends with RawRecords::period. REQUIRES a source of such periods.
  virtual void SetPeriods(TopicPeriods) {
    TACIT_CHECK(false, "a source without periods of its own");
  }
  // Reports to the source what `store` has committed, for lag tools. `store` replaces the earlier
  // claim: a source that opens again compares with it. May be called from any thread.
  virtual void Advise(std::span<const PartitionOffset> committed, const StoreClaim& store) = 0;
  // May be called from any thread.
  virtual SourceHealth health() const { return {}; }

  // Returns the number of records from the given offsets to the end, if known; for progress bars.
  virtual uint64_t RecordsAfter(std::span<const PartitionOffset> positions) const = 0;
  // Identifies the records read up to the last Poll. The store keeps it with the position and
  // passes it to VerifyIdentity at the next start, so that a changed log is refused.
  virtual std::string Identity() const = 0;
  virtual Status VerifyIdentity(const std::string& stored) = 0;
};

}  // namespace tacit::stream
