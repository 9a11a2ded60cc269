#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"

// The records of a feed, as Kafka has them: a key and a value. record.cc has their grammar.
namespace tacit::feed {

enum class RecordKind : uint8_t { kRow, kBlock, kDense, kReleased, kLedger, kVersionEnd };

// The place that a record has in the model: the key of the topic. A newer record of the same place
// takes the older one's.
struct RecordPlace {
  RecordKind kind = RecordKind::kVersionEnd;
  uint16_t learner = 0;  // row, block, dense, released: its key in the store
  uint16_t table = 0;    // row, block: the table's number in the store's keys
  uint64_t number = 0;   // row: bucket; block: its number; dense, released: chunk; ledger: entry
  friend auto operator<=>(const RecordPlace&, const RecordPlace&) = default;
};

using LineageId = std::array<uint8_t, 16>;

// The origin of a record: every record tells it.
struct RecordOrigin {
  CommitSeq version;    // the published version that it came with
  LineageId lineage{};  // of the store that published it
  uint64_t model =
      0;  // ModelId of the learner; of a ledger entry or version end, that of all learners
  // The version's rows tell how they moved (kMoveFloats), for workers: format 2.
  bool moves = false;
  friend bool operator==(const RecordOrigin&, const RecordOrigin&) = default;
};

struct Record {
  RecordPlace place;
  RecordOrigin origin;
  std::string_view payload;  // of the bytes that were decoded
  uint32_t checksum = 0;     // of key and value
};

// The floats behind a row's own in a version whose rows tell how they moved: the last move of a
// linear model's weight, and the number of the release that moved it; zeros in rows of others.
inline constexpr size_t kMoveFloats = 2;

// The most bytes of a payload: what a chunk of dense parameters has.
inline constexpr uint32_t kPayloadBytesMost = 256 << 10;
// The most chunks that dense parameters or a released state have.
inline constexpr uint32_t kChunksMost = 1 << 16;

// The first bytes of a fingerprint, as a number.
uint64_t ModelId(const Digest& fingerprint);
// The id of a lineage that is written as 32 hexadecimal digits. kInvalidArgument for another text.
Result<LineageId> LineageIdOf(std::string_view lineage);

std::string EncodeKey(const RecordPlace& place);
// Appends the value of a record to `out`, and returns the record's checksum. REQUIRES a payload of
// kPayloadBytesMost at most.
uint32_t AppendValue(const RecordPlace& place, const RecordOrigin& origin, std::string_view payload,
                     std::string* out);
// The same for a caller that has the key.
uint32_t AppendValue(std::string_view key, const RecordOrigin& origin, std::string_view payload,
                     std::string* out);

// Reads a record. kCorruption: these are not the bytes of one. kRefused: one of another format.
Result<Record> DecodeRecord(std::string_view key, std::string_view value);

}  // namespace tacit::feed
