#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "event/raw_records.h"

namespace tacit::stream {

struct PartitionOffset {
  static constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();

  int32_t partition = 0;
  uint64_t offset = 0;  // the next record to read; what nobody has read of yet: kNowhere
  // To be read from the first record there is, by somebody who has not read of it yet; `offset`
  // is then how far the others are, and has to be there too.
  bool from_beginning = false;
  // So many records before `offset` are delivered too, as far as they are still there: what is new
  // is known by them.
  uint64_t before = 0;

  // Where reading begins; of a source that ends where it began, the beginning is 0.
  uint64_t first() const { return from_beginning ? 0 : offset - std::min(before, offset); }
};

// How far a store is: what it says of itself where others may see how far it has read.
struct StoreMark {
  std::string lineage;
  uint64_t sequence = 0;  // of its last commit
  std::string head;       // of its ledger then, in hexadecimal
  friend bool operator==(const StoreMark&, const StoreMark&) = default;
};

struct SourceHealth {
  bool connected = true;
  std::string alert;  // for the operator; empty: nothing is the matter
};

enum class PollOutcome {
  kRecords,  // `records` holds at least one record or mark
  kNothing,  // none within the timeout; more may come
  kEnd,      // a source with an end (log files) has delivered everything
};

// Where interactions come from: log files, the generator, Kafka. Records of a partition come in
// offset order, each exactly once between two Seeks; which record has which offset never changes.
// One thread polls, pauses and seeks; not thread-safe.
class Source {
 public:
  virtual ~Source() = default;

  // A name that is the same for the same records, in ledger ranges: topic id or log name.
  virtual std::string topic() const = 0;
  virtual std::vector<int32_t> partitions() const = 0;

  // Replaces `records` with the next run of records of one partition.
  virtual Result<PollOutcome> Poll(std::chrono::milliseconds timeout,
                                   event::RawRecords* records) = 0;
  // Goes on from these positions; partitions that are not named are read from their beginning.
  // Fails, naming the offset, where a position cannot be reached or the records before it are not
  // those that were read (a changed file). A source that is out of reach now finds out later, and
  // Poll fails.
  virtual Status Seek(std::span<const PartitionOffset> positions) = 0;
  // Back-pressure: a paused partition delivers nothing until resumed.
  virtual void Pause(std::span<const int32_t> partitions) = 0;
  virtual void Resume(std::span<const int32_t> partitions) = 0;
  // Says which store reads, before the first Seek: where another one has read, or a newer copy of
  // this one, Seek refuses.
  virtual void Claim(const StoreMark&) {}
  // Tells the source what `store` has committed, for lag tools and for Claim. From any thread.
  virtual void Advise(std::span<const PartitionOffset> committed, const StoreMark& store) = 0;
  // From any thread.
  virtual SourceHealth health() const { return {}; }

  // Records from the given offsets to the end, when the source knows; for progress bars.
  virtual uint64_t RecordsAfter(std::span<const PartitionOffset> positions) const = 0;
  // What identifies the records already read up to the last Poll; stored with the position and
  // handed back to VerifyIdentity at the next start, so that a changed log is refused.
  virtual std::string Identity() const = 0;
  virtual Status VerifyIdentity(const std::string& stored) = 0;
};

}  // namespace tacit::stream
