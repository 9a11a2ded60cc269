#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/ledger.h"
#include "store/witness/witness_record.h"

namespace tacit::store {

// The steps of each learner by what they were charged: what a ledger's entries add up to, in the
// order of the last ones. It follows a ledger at the cost of what has changed there. A value.
class PriceTally {
 public:
  PriceTally() = default;
  explicit PriceTally(std::span<const privacy::LedgerEntry> entries) { Count(entries, 0); }

  // Counts a ledger's entries from `first` on again. REQUIRES that those before it are as they were
  // when they were counted, and that no entry has fewer steps than then.
  void Count(std::span<const privacy::LedgerEntry> entries, size_t first);

  // By the learner's name now. Valid until the next Count.
  std::span<const WitnessedLearner::Priced> Of(std::string_view learner) const;
  uint64_t StepsAt(std::string_view learner, const WitnessedLearner::Charged& charged) const;

 private:
  std::map<std::string, std::vector<WitnessedLearner::Priced>, std::less<>> learners_;
  std::vector<uint64_t> counted_;  // steps of each entry
};

}  // namespace tacit::store
