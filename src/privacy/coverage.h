#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace tacit::privacy {

// How much each record of the stream has been used by one learner: mu^2 per offset, as a step
// function over (topic, partition, offset). The worst unit of an event-level learner is the highest
// step. Restoring an old checkpoint keeps the coverage, so consuming records again adds up. A
// value.
class Coverage {
 public:
  // Adds mu_squared to every offset of the ranges.
  void Add(std::string_view topic, std::span<const OffsetRange> ranges, double mu_squared);

  // The worst offset of all; 0 when nothing is covered.
  double WorstMuSquared() const { return worst_; }
  // The worst offset after an Add of these ranges, without doing it.
  double WorstAfter(std::string_view topic, std::span<const OffsetRange> ranges,
                    double mu_squared) const;

  std::string Encode() const;
  static Result<Coverage> Decode(std::string_view bytes);

 private:
  // Per (topic, partition): offset -> mu^2 from there to the next key; ends with a zero step.
  using Steps = std::map<uint64_t, double>;
  std::map<std::pair<std::string, int32_t>, Steps, std::less<>> partitions_;
  double worst_ = 0;
};

}  // namespace tacit::privacy
