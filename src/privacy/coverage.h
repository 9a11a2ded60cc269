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

// So much spent by each offset of the ranges; by an offset that is in two of them, twice.
struct Use {
  std::string_view topic;
  std::span<const OffsetRange> ranges;
  Spending spending;
};

// How much each record of the stream has been used by one learner: a Spending per offset, as a step
// function over (topic, partition, offset). The worst unit of an event-level learner is among the
// highest steps. Restoring an old checkpoint keeps the coverage, so consuming records again adds
// up. A value.
class Coverage {
 public:
  // REQUIRES ranges that do not end before they begin.
  void Add(const Use& use);

  // What the worst offsets have spent: every spending that no other covers, in no order.
  const std::vector<Spending>& Worst() const { return worst_; }
  // The same after an Add of each of these, without doing it.
  std::vector<Spending> WorstAfter(std::span<const Use> uses) const;

  // Adds what another learner has used of the same stream, offset by offset.
  void AddAll(const Coverage& other);

  // The byte format is in README.md of this room.
  std::string Encode() const;
  static Result<Coverage> Decode(std::string_view bytes);

  friend bool operator==(const Coverage& a, const Coverage& b) {
    return a.partitions_ == b.partitions_;
  }

 private:
  // Per (topic, partition): offset -> spending from there to the next key; ends with an empty one.
  using Steps = std::map<uint64_t, Spending>;
  using Place = std::pair<std::string, int32_t>;

  void AddTo(Steps& steps, uint64_t begin, uint64_t end, const Spending& spending);
  static Steps::iterator SplitAt(Steps& steps, uint64_t offset);
  static bool DecodeSteps(ByteReader* in, Steps* steps);

  std::map<Place, Steps> partitions_;
  std::vector<Spending> worst_;
};

}  // namespace tacit::privacy
