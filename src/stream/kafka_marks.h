#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "stream/source.h"

// What is kept of a topic to know it again.
namespace tacit::stream {

// A record as far as one can tell it from another that was put in its place.
struct RecordMark {
  uint64_t offset = 0;
  int64_t timestamp_ms = 0;
  uint64_t hash = 0;  // XXH64 of its value
  friend bool operator==(const RecordMark&, const RecordMark&) = default;
};

// The last record read of each partition of a topic; stored with the positions. The brokers of
// Kafka number the records of a topic that was deleted and made anew from 0 again, and librdkafka
// 2.0 does not tell the two topics apart: their records do. The byte format is in README.md.
struct KafkaIdentity {
  std::string topic;
  std::map<int32_t, RecordMark> last;

  std::string Encode() const;
  // kRefused for the identity of another kind of source, kCorruption for bytes that are none.
  static Result<KafkaIdentity> Decode(std::string_view bytes);
};

// The metadata of an offset commit: "lineage:HEX seq:N head:HEX".
std::string Text(const StoreMark& mark);
// Nothing where somebody else wrote the metadata.
std::optional<StoreMark> ParseStoreMark(std::string_view metadata);

}  // namespace tacit::stream
