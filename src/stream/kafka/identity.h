#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "stream/source.h"

// Stored to recognise a topic, or a store's commit, again.
namespace tacit::stream {

// The last record read of a partition: tells it from another one put in its place, as far as that
// is possible.
struct LastRecord {
  uint64_t offset = 0;
  int64_t timestamp_ms = 0;
  uint64_t hash = 0;  // XXH64 of its value
  friend bool operator==(const LastRecord&, const LastRecord&) = default;
};

// The last record read of each partition of a topic; stored with the positions. When a topic is
// deleted and made anew, Kafka numbers its records from 0 again, and librdkafka 2.0 does not tell
// the two topics apart: their records do. identity.cc has the byte grammar.
struct KafkaIdentity {
  std::string topic;
  std::map<int32_t, LastRecord> last;

  std::string Encode() const;
  // kRefused: the identity of another kind of source. kCorruption: bytes that are no identity.
  static Result<KafkaIdentity> Decode(std::string_view bytes);
};

// The metadata of an offset commit: "lineage:HEX seq:N head:HEX term:HEX".
std::string Text(const StoreMark& mark);
// Returns nullopt if another program wrote the metadata.
std::optional<StoreMark> ParseStoreMark(std::string_view metadata);

}  // namespace tacit::stream
