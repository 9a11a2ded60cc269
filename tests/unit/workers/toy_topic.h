#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "workers/records.h"

namespace tacit::workers {

// A topic of events in memory. Some offsets have no record, as after compaction.
class ToyTopic {
 public:
  ToyTopic(uint64_t seed, int32_t partitions, uint64_t offsets) {
    std::mt19937_64 random(seed);
    for (int32_t partition = 0; partition < partitions; ++partition) {
      auto& records = partitions_.emplace_back(offsets);
      for (auto& record : records)
        if (&record == records.data() || random() % 8 != 0) record = random();
    }
  }

  // Another topic, with records at the same offsets.
  ToyTopic MadeAnew(uint64_t seed) const {
    std::mt19937_64 random(seed);
    ToyTopic made = *this;
    for (auto& records : made.partitions_)
      for (auto& record : records)
        if (record) record = random();
    return made;
  }

  // Null where the offset is empty.
  const uint64_t* At(int32_t partition, uint64_t offset) const {
    const auto& record = partitions_.at(static_cast<size_t>(partition)).at(offset);
    return record ? &*record : nullptr;
  }
  // The last record before an offset.
  Seen Before(int32_t partition, uint64_t offset) const {
    while (offset-- > 0)
      if (const uint64_t* value = At(partition, offset))
        return stream::LastRecord{offset, static_cast<int64_t>(offset), *value};
    return std::nullopt;
  }

 private:
  std::vector<std::vector<std::optional<uint64_t>>> partitions_;
};

// Integers that are added up: their sum does not depend on how a period is cut.
struct ToySums {
  uint64_t weighted = 0, placed = 0, count = 0;
  friend bool operator==(const ToySums&, const ToySums&) = default;

  void Add(const Digest& model, uint64_t offset, uint64_t value) {
    weighted += value * (uint64_t{2} * model[0] + 1);
    placed += value * (offset + 1);
    ++count;
  }
  void Add(const std::string& bytes) {
    ByteReader in(bytes);
    weighted += in.Get<uint64_t>();
    placed += in.Get<uint64_t>();
    count += in.Get<uint64_t>();
  }
};

// A worker's sums of these ranges with this model. One body in sixteen is long enough for several
// chunks; which one follows from the ranges, so that copies are equal.
inline Body ToyBody(const ToyTopic& topic, const Digest& model, const Ranges& ranges) {
  Body body;
  ToySums sums;
  for (const OffsetRange& range : ranges) {
    SummedRange summed{.range = range,
                       .before = topic.Before(range.partition, range.begin),
                       .last = topic.Before(range.partition, range.end)};
    for (uint64_t offset = range.begin; offset < range.end; ++offset)
      if (const uint64_t* value = topic.At(range.partition, offset))
        sums.Add(model, offset, *value);
      else
        ++summed.empty;
    body.ranges.push_back(summed);
  }
  ByteWriter out;
  out.Put(sums.weighted).Put(sums.placed).Put(sums.count);
  const bool is_long = (ranges[0].begin + ranges[0].end + model[1]) % 16 == 0;
  body.sums = EncodeParts(
      {{.key = 0, .bytes = out.bytes() + std::string(is_long ? 2 * kChunkBytes + 100 : 0, '\0')}});
  return body;
}

}  // namespace tacit::workers
