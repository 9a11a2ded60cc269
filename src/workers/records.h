#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "event/raw_records.h"
#include "stream/kafka/identity.h"
#include "workers/seal.h"
#include "workers/slices.h"

// The records of the two topics between a trainer and its workers: NAME.plan, where the trainer
// says which ranges it wants summed, and NAME.sums, where workers send sums and hellos. records.cc
// has their grammar. Every decoder refuses bytes that are not in the one form of their record:
// kCorruption names field and offset, kRefused a format that needs a newer program.
namespace tacit::workers {

// A slice and the worker that it is announced for; an empty name: the trainer sums it.
struct Slice {
  std::string worker;
  Ranges ranges;
  friend bool operator==(const Slice&, const Slice&) = default;
};

// A learner of the period: its key in the store, and the step that the period is.
struct LearnerStep {
  uint16_t key = 0;
  uint64_t step = 0;
  friend bool operator==(const LearnerStep&, const LearnerStep&) = default;
};

// The slices of a period that are not covered yet. A worker takes a plan if its feed has exactly
// this head and its build is this one.
struct Plan {
  Digest head{}, build{};
  uint64_t version = 0;  // the commit that has the head
  // When it was written, and above that of each plan before it: the highest counts, and a plan that
  // somebody writes into the topic again does not.
  int64_t time_ms = 0;
  std::vector<LearnerStep> learners;
  std::vector<Slice> slices;
  friend bool operator==(const Plan&, const Plan&) = default;
};

std::string EncodePlan(const SharedKey& key, const Plan& plan);
// kCorruption too where the plan's mark was not made with this key.
Result<Plan> DecodePlan(const SharedKey& key, std::string_view bytes);

// The last record up to an offset of a partition; nothing where no record lies before it.
using Seen = std::optional<stream::LastRecord>;

// A summed range: each of its offsets is an event of the sums or is counted here.
struct SummedRange {
  OffsetRange range;
  Seen before{}, last{};                          // up to its begin and up to its end
  std::array<uint64_t, event::kBadParts> dead{};  // records that could not be learnt from
  uint64_t opted_out = 0;
  uint64_t empty = 0;  // offsets without a record: marks of transactions, and compaction
  friend bool operator==(const SummedRange&, const SummedRange&) = default;
};

// A learner's part of the sums: its key in the store, and its own bytes.
struct LearnerPart {
  uint16_t key = 0;
  std::string bytes;
  friend bool operator==(const LearnerPart&, const LearnerPart&) = default;
};

// REQUIRES ascending keys.
std::string EncodeParts(const std::vector<LearnerPart>& parts);
Result<std::vector<LearnerPart>> DecodeParts(std::string_view sums);

// The sums of a slice. All of it is a function of head, ranges and build, so two workers make equal
// bytes. `sums` are the parts of the learners of the plan.
struct Body {
  std::vector<SummedRange> ranges;
  std::string sums;
  friend bool operator==(const Body&, const Body&) = default;
};

Ranges RangesOf(const Body& body);
// Returns the records of all its ranges.
event::SummedRecords RecordsOf(const Body& body);
std::string EncodeBody(const Body& body);
Result<Body> DecodeBody(std::string_view bytes);

// The sender of a record of NAME.sums.
struct Origin {
  // Names one process: it ends with digits that were drawn at its start. Letters, digits, and
  // "._-": a stranger who writes the topic chooses it as well, and people read it.
  std::string worker;
  Digest head{}, build{};
  friend bool operator==(const Origin&, const Origin&) = default;
};

// Sent once a second. A trainer tells by plan and number whether it was said just now.
struct Hello {
  Origin origin;
  uint64_t version = 0;  // the commit of the feed that has the head
  int64_t plan_ms = 0;   // time_ms of the plan that counts for the worker; 0: it has read no plan
  uint64_t number = 0;   // of this process's hellos, from 1 on
  uint16_t threads = 0;
  uint64_t events_per_second = 0;  // 0: not known yet
  uint64_t offsets = 0, done = 0;  // of the slice in hand
  bool leaves = false;
  std::string trouble{};
  friend bool operator==(const Hello&, const Hello&) = default;
};

// A chunk's place in its body.
struct ChunkPlace {
  BodyName body{};
  uint64_t bytes = 0;  // of the body
  uint32_t chunk = 0;
  friend bool operator==(const ChunkPlace&, const ChunkPlace&) = default;
};

// Chunks have this many bytes of their body; the last one has the rest. With what stands around
// them they keep below the default of max.message.bytes.
inline constexpr uint64_t kChunkBytes = 512 << 10;
inline constexpr uint64_t kBodyBytesMost = 1 << 30;
// A plan, and a body, have at most this many ranges. So a plan stays below max.message.bytes.
inline constexpr uint32_t kRangesMost = 1 << 15;
inline constexpr uint32_t kNameBytesMost = 100, kTroubleBytesMost = 1024;
// A hello names no later plan: a trainer counts on above it.
inline constexpr int64_t kPlanTimeMost = int64_t{1} << 53;
// A letter that a worker's name may have.
bool IsOfName(char letter);

struct KafkaRecord {
  std::string key, value;
};

// Cuts a body into chunks and seals each.
std::vector<KafkaRecord> SealBody(const SharedKey& key, const Origin& origin,
                                  std::string_view body);
KafkaRecord SealHello(const SharedKey& key, const Hello& hello);

// A record of NAME.sums as brokers see it; it must not outlive its bytes.
struct SealedRecord {
  Origin origin;
  std::optional<ChunkPlace> place;  // nothing in a hello
  std::string associated;           // the Kafka key and all that is not sealed
  std::string_view sealed;
};

Result<SealedRecord> ReadSums(std::string_view key, std::string_view value);
Result<Hello> OpenHello(const SharedKey& key, const SealedRecord& record);
// Returns the chunk's bytes of its body. REQUIRES a record with a place.
Result<std::string> OpenChunk(const PeriodSeal& seal, const SealedRecord& record);

}  // namespace tacit::workers
