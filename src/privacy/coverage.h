#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/result.h"

namespace tacit::privacy {

// How much each record of the stream has been used by one learner: mu^2 per offset, as a step
// function over (topic, partition, offset). The worst unit of an event-level learner is the highest
// step. Restoring an old checkpoint keeps the coverage, so consuming records again adds up. A
// value.
class Coverage {
 public:
  // Adds mu_squared to every offset of the ranges; to an offset that is in two of them, twice.
  // REQUIRES begin <= end and mu_squared >= 0 (infinite for a learner without privacy).
  void Add(std::string_view topic, std::span<const OffsetRange> ranges, double mu_squared);

  // The worst offset of all; 0 when nothing is covered.
  double WorstMuSquared() const { return worst_; }
  // The worst offset after an Add of these ranges, without doing it.
  double WorstAfter(std::string_view topic, std::span<const OffsetRange> ranges,
                    double mu_squared) const;

  // Adds what another learner has used of the same stream, offset by offset.
  void AddAll(const Coverage& other);

  // The byte format is in README.md of this room.
  std::string Encode() const;
  static Result<Coverage> Decode(std::string_view bytes);

  friend bool operator==(const Coverage&, const Coverage&) = default;

 private:
  // Per (topic, partition): offset -> mu^2 from there to the next key; ends with a zero step.
  using Steps = std::map<uint64_t, double>;
  using Place = std::pair<std::string, int32_t>;

  // What is added to one partition; returns the highest step it makes.
  static double AddTo(Steps& steps, uint64_t begin, uint64_t end, double mu_squared);
  static double HighestIn(const Steps& steps, uint64_t begin, uint64_t end);

  std::map<Place, Steps> partitions_;
  double worst_ = 0;
};

}  // namespace tacit::privacy
