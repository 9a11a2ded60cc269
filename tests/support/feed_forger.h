#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "feed/record.h"
#include "feed/version_end.h"

namespace tacit::test {

// The records of a feed for workers as who may write to its topic can have them: of the same head
// and lineage, with right checksums, and one weight of each block is another.
class FeedForger {
 public:
  // Returns the value of the record that is next in its partition. REQUIRES records that are whole.
  std::string Forge(int32_t partition, std::string_view key, std::string_view value) {
    const feed::Record read = feed::DecodeRecord(key, value).value();
    std::string payload(read.payload), forged;
    if (read.place.kind == feed::RecordKind::kBlock) {
      payload[payload.size() - 9] ^= 1;  // of the last row's weight: its move and release follow
      ++changed_;
    }
    const bool ends = read.place.kind == feed::RecordKind::kVersionEnd;
    if (ends) {
      feed::VersionEnd end = feed::DecodeVersionEnd(read.payload).value();
      end.checksum = std::exchange(checksums_[partition], 0);
      payload = feed::EncodeVersionEnd(end);
    }
    const uint32_t checksum = feed::AppendValue(key, read.origin, payload, &forged);
    if (!ends) checksums_[partition] += checksum;
    return forged;
  }

  size_t changed() const { return changed_; }

 private:
  size_t changed_ = 0;
  std::map<int32_t, uint64_t> checksums_;
};

}  // namespace tacit::test
