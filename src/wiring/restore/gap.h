#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/care/remains.h"
#include "store/care/restore.h"
#include "store/witness/witness_record.h"
#include "wiring/assembly.h"

// The steps that a lost store took after a copy of it: what they are charged, and how many of them
// each user can have been in.
namespace tacit::wiring {

// A LearnerTrail is all that is known of a learner, from the oldest to the newest.
struct LearnerTrail {
  store::RemainingLearner copy;                           // as the copy has it that is restored
  std::span<const privacy::LedgerEntry> entries_of_copy;  // all that its ledger has
  // As a later copy has it whose ledger can be read, with all ledger entries there.
  std::optional<store::RemainingLearner> later;
  std::span<const privacy::LedgerEntry> entries;
  bool later_has_users = false;  // its counts of users are taken over
  store::WitnessedLearner last;  // as witness or mark remember it
};

struct FoundGap {
  store::LearnerGap gap;
  // The records that users are counted in, where Users::kAll could become kCounted: those of the
  // steps that no counts of users reach to. If empty, they cannot be told.
  std::vector<OffsetRange> unaccounted;
  uint64_t counted_steps = 0;     // that counts of users reach to
  uint64_t steps_per_record = 1;  // that a record brings its user into
};

// Says what the lost steps cost at most: those that the later copy's ledger has, and those after
// it, each at the price that was charged. `topic` is the source's name for its records. Nothing if
// there was no step. kRefused: the learner's promise or last price has changed, too little is
// remembered to say what the steps cost, or the learner cannot have come to the position.
Result<std::optional<FoundGap>> FindGap(const LearnerPlan& plan, const config::Learner& learner,
                                        const LearnerTrail& trail, const std::string& topic);

}  // namespace tacit::wiring
