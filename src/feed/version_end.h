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
#include "base/siphash.h"
#include "base/terms.h"
#include "store/view/delta_codec.h"

namespace tacit::feed {

using FeedId = std::array<uint8_t, 16>;

// A learner as of a version.
struct LearnerAtEnd {
  uint16_t key = 0;
  std::string record;         // store::EncodeLearner: name, fingerprint and layout
  uint32_t step = 0;          // the last step of its moving average; 0: it keeps none
  uint64_t dense_floats = 0;  // in dense_chunks
  uint32_t dense_chunks = 0;
  uint64_t released_bytes = 0;
  uint32_t released_chunks = 0;
  friend bool operator==(const LearnerAtEnd&, const LearnerAtEnd&) = default;
};

// The last record of a version in a partition: a reader that has it of every partition has the
// version. The version itself and the lineage are the record's (RecordOrigin).
struct VersionEnd {
  FeedId feed{};  // drawn for a topic when its first version is published
  uint32_t partition = 0, partitions = 0;
  CommitSeq previous;     // the version that was published before; 0: none
  CommitSeq whole_since;  // the version that was last sent whole; all later ones build on it
  TermId term = kNoTerm;
  int64_t time_ms = 0;                 // of publication, Unix
  uint64_t records = 0;                // of this version in this partition, without this one
  uint64_t checksum = 0;               // the sum of their checksums, modulo 2^64
  uint64_t all_records = 0;            // of this version in all partitions, without version ends
  uint64_t all_bytes = 0;              // of their keys and values
  store::CommitTip tip;                // the version, head and length of the ledger, what was spent
  std::vector<LearnerAtEnd> learners;  // ascending by key
  std::optional<Hash128> mark = {};    // ModelMark, for workers
};

std::string EncodeVersionEnd(const VersionEnd& end);
// kCorruption: these are not the bytes of a version end, or its parts do not belong together.
Result<VersionEnd> DecodeVersionEnd(std::string_view payload);

}  // namespace tacit::feed
