#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tacit {

// A number whose type keeps it from being mixed up with another kind of number.
template <class Tag, class Rep>
struct StrongNumber {
  Rep value{};

  constexpr StrongNumber() = default;
  constexpr explicit StrongNumber(Rep v) : value(v) {}
  friend constexpr auto operator<=>(StrongNumber, StrongNumber) = default;
};

// A learner's index in the configuration. Store keys hold this index; the name is the user's own
// id.
using LearnerIndex = StrongNumber<struct LearnerIndexTag, uint16_t>;
// A partition of the source's topic.
using PartitionId = StrongNumber<struct PartitionIdTag, int32_t>;
// The sequence number of a commit; 0 is the empty store, before the first.
using CommitSeq = StrongNumber<struct CommitSeqTag, uint64_t>;

// Privacy quantities. Noise multiplier = noise standard deviation / sensitivity.
using Epsilon = StrongNumber<struct EpsilonTag, double>;
using Delta = StrongNumber<struct DeltaTag, double>;
using NoiseMultiplier = StrongNumber<struct NoiseMultiplierTag, double>;

// A half-open run of records of one partition.
struct OffsetRange {
  int32_t partition = 0;
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
  friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

}  // namespace tacit

template <class Tag, class Rep>
struct std::hash<tacit::StrongNumber<Tag, Rep>> {
  size_t operator()(tacit::StrongNumber<Tag, Rep> n) const { return std::hash<Rep>{}(n.value); }
};
