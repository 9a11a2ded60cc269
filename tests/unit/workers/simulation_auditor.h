#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "toy_topic.h"

// A simulated trainer's store, and the auditor of its releases.
namespace tacit::workers {

inline constexpr uint64_t kBegin = 10;  // the store has learnt the records before

struct Commit {
  Digest head;  // that the period began at
  Ranges ranges;
  ToySums released;
};

// All of a trainer that survives its death.
struct Store {
  Digest head{2};
  uint64_t version = 1;
  std::map<int32_t, uint64_t> positions;
  std::map<int32_t, stream::LastRecord> last;
  std::vector<Commit> commits;
};

// Knows the topic of events and the stores, and nothing of plans and messages.
class Auditor {
 public:
  explicit Auditor(const ToyTopic& events) : events_(events) {}

  void Audit(const Store& store) {
    std::map<int32_t, uint64_t> next;
    for (const Commit& commit : store.commits) {
      ToySums due;
      for (const OffsetRange& range : commit.ranges) {
        uint64_t& from = next.try_emplace(range.partition, kBegin).first->second;
        if (range.begin != from) complaints.push_back("a period does not follow the one before");
        for (; from < range.end; ++from)
          if (const uint64_t* value = events_.At(range.partition, from)) {
            due.weighted += *value + *value * commit.head[0] * 2;
            due.placed += *value * from + *value;
            due.count += 1;
          }
      }
      if (due != commit.released) complaints.push_back("a release is not the sum of its records");
    }
    for (const auto& [partition, position] : store.positions)
      if (position != next.try_emplace(partition, kBegin).first->second)
        complaints.push_back("a position is not the end of what was learnt");
  }
  // Chunks name their head in the clear, behind 5 bytes and the sender's name.
  void SeesDeletion(const Store& store, const KafkaRecord& record) {
    if (record.key[0] != 'c') return;
    ByteReader in(std::string_view(record.value).substr(5));
    in.GetString();
    Digest head{};
    in.GetArray(std::span<uint8_t>(head));
    if (head == store.head) complaints.push_back("sums were deleted before their commit");
  }

  std::vector<std::string> complaints;

 private:
  const ToyTopic& events_;
};

}  // namespace tacit::workers
