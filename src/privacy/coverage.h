#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "privacy/spending.h"

namespace tacit::privacy {

// Spending by each offset of the ranges; an offset in two ranges spends twice.
struct Use {
  std::string_view topic;
  std::span<const OffsetRange> ranges;
  Spending spending;
};

// One learner's use of each record of the stream: a Spending per offset, as a step function over
// (topic, partition, offset). The worst unit of an event-level learner is among the highest steps.
// Restoring an old checkpoint keeps the coverage, so that reading records again adds up. A value.
class Coverage {
 public:
  // REQUIRES ranges with begin <= end.
  void Add(const Use& use);

  // The spendings of the worst offsets: all that no other covers, unordered.
  const std::vector<Spending>& Worst() const { return worst_; }
  // Worst() as it would be after adding all of `uses`.
  std::vector<Spending> WorstAfter(std::span<const Use> uses) const;

  // Adds another learner's use of the same stream, offset by offset.
  void AddAll(const Coverage& other);

  // coverage.cc has the byte grammar.
  std::string Encode() const;
  static Result<Coverage> Decode(std::string_view bytes);

  friend bool operator==(const Coverage& a, const Coverage& b) {
    return a.partitions_ == b.partitions_;
  }

 private:
  // Per (topic, partition): offset -> spending from there to the next key; the last one is empty.
  using Steps = std::map<uint64_t, Spending>;
  using Place = std::pair<std::string, int32_t>;

  void AddTo(Steps& steps, uint64_t begin, uint64_t end, const Spending& spending);
  static Steps::iterator SplitAt(Steps& steps, uint64_t offset);
  static bool DecodeSteps(ByteReader* in, Steps* steps);

  std::map<Place, Steps> partitions_;
  std::vector<Spending> worst_;
};

}  // namespace tacit::privacy
