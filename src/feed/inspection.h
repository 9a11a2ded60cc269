#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "feed/record.h"
#include "feed/version_end.h"
#include "stream/kafka/properties.h"

namespace tacit::feed {

// A version as it is found in a topic.
struct FoundVersion {
  VersionEnd end;  // one of its version ends
  RecordOrigin origin;
  uint32_t ends = 0;  // partitions that have its version end
  // Its records that are there; compaction takes those that a newer version has again.
  uint64_t records = 0;
  bool sums_fit = true;  // of all partitions with its version end: number and checksums are its own

  bool whole() const { return ends == end.partitions && sums_fit; }
};

// All that a topic holds, by reading all of it.
struct Inspection {
  uint32_t partitions = 0;
  uint64_t records = 0, bytes = 0;     // of keys and values
  uint64_t rows = 0;                   // among them; of one row there may be several until
                                       // compaction
  std::vector<FoundVersion> versions;  // that have a version end, in the order of publication
  std::vector<std::string> faults;     // why the newest version cannot be relied on
};

// Reads a topic from its beginning to where it ends now, and checks it: every record, and whether
// the newest version is whole: its version ends, chunks, the lengths of its rows, and the ledger's
// chain up to the head that they have. A record that cannot be read is a fault with its place.
// `tell` (may be empty) is called now and then with the records so far. kUnavailable: no record has
// come for `patience`. kNotFound: there is no such topic.
Result<Inspection> InspectFeed(const stream::KafkaProperties& properties, const std::string& topic,
                               std::chrono::milliseconds patience,
                               const std::function<void(uint64_t)>& tell);

}  // namespace tacit::feed
