#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/terms.h"
#include "privacy/ledger.h"

namespace tacit::store {

struct LearnerRecord;
class PriceTally;

// A learner's progress at a commit: enough to charge it later for the steps between an older copy
// of the store and this commit.
struct WitnessedLearner {
  std::string name;
  uint64_t steps = 0;  // steps charged
  // Fields of the ledger entry that its next steps may extend; nothing before its first charge.
  struct Charged {
    privacy::Charge charge;
    privacy::Unit unit = privacy::Unit::kEvent;
    privacy::Adjacency adjacency = privacy::Adjacency::kZeroOut;
    privacy::ParticipationMode participation = privacy::ParticipationMode::kOnce;
    privacy::Bounds bounds;
    double delta = 0;
    friend bool operator==(const Charged&, const Charged&) = default;
  };
  std::optional<Charged> charged = {};
  std::optional<std::string> position =
      {};  // in the store's encoding; nothing if it is too long for a witness
  // Steps by price, for the 64 prices that were charged last, in the order of their last step. A
  // step of another price came before all of these.
  struct Priced {
    Charged charged;
    uint64_t steps = 0;
  };
  std::vector<Priced> prices = {};

  friend bool operator==(const WitnessedLearner&, const WitnessedLearner&);
};

// The newest commit of a lineage that a witness has seen.
struct WitnessRecord {
  std::string lineage;  // 32 digits
  CommitSeq seq;
  Digest head{};
  TermId term = kNoTerm;
  std::vector<WitnessedLearner> learners = {};
};

// The witnessed state of all learners. `positions` are by key, like `records`; `prices` has counted
// all of the ledger's entries.
std::vector<WitnessedLearner> WitnessLearners(const std::vector<LearnerRecord>& records,
                                              std::span<const std::string> positions,
                                              const privacy::Ledger& ledger,
                                              const PriceTally& prices);

// The fields of an entry that say what its steps were charged.
WitnessedLearner::Charged ChargedIn(const privacy::LedgerEntry& entry);

// One copy of a record in the file, with its write number and the slot distance.
struct WitnessCopy {
  uint64_t write = 0;     // increases by one per write
  uint32_t distance = 0;  // between the slots of the file
  WitnessRecord record;
};

// The .cc has the byte grammar. REQUIRES a lineage of 32 digits.
std::string EncodeCopy(const WitnessCopy& copy);
// Decodes the copy at the start of `bytes`; nothing if there is none.
std::optional<WitnessCopy> DecodeCopy(std::string_view bytes);

// True for a file that a program before 0.1.0 wrote: its magic was another, at byte 8 or 12.
bool IsBeforeFirst(std::string_view file);

}  // namespace tacit::store
