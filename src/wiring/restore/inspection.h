#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "privacy/charge.h"
#include "privacy/ledger.h"
#include "store/store.h"

// An inspection's account: `tacit inspect --private` chooses a configuration by noised counts, and
// the store that will learn by it is charged before any of them is shown.
namespace tacit::wiring {

struct Inspection {
  std::string store;    // made if it is not there
  std::string witness;  // if empty, where it is, or else where a proposal puts one (WitnessOfNew)
  privacy::Unit unit = privacy::Unit::kEvent;
  double epsilon = 0, delta = 0;  // of this inspection alone
  // A topic's name and its offsets that are counted, which the ledger takes as it does a step's;
  // if empty, files are looked at.
  std::string topic = {};
  std::vector<OffsetRange> ranges = {};
};

// The charge, and what the store's account has come to.
struct ChargedInspection {
  std::string account, witness;
  uint64_t commit = 0;
  double account_epsilon = 0;                 // of all inspections of this unit
  double total_epsilon = 0, total_delta = 0;  // with all that was ever learnt
};

// The account's name in ledger and store. No learner can have it: their ids have no dot.
std::string InspectionAccount(privacy::Unit unit);
// The other way round; nothing if this is another account.
std::optional<privacy::Unit> UnitOfInspections(std::string_view account);

// Returns the noise multiplier of all counts together that this epsilon pays for.
double InspectionNoise(double epsilon, double delta);
// Returns the charge of an inspection: one Gaussian, which counts against every unit of the stream.
privacy::Charge InspectionCharge(double noise_multiplier);
// The noise multipliers of the account's inspections, from the first to the last one in the ledger.
std::vector<double> InspectionsOf(std::string_view account,
                                  std::span<const privacy::LedgerEntry> entries);
// The account's place in a store once it was charged for these inspections at this delta; its
// promise is what they come to. kInvalidArgument: delta is none.
Result<store::LearnerLayout> InspectionLayout(privacy::Unit unit, double delta,
                                              std::span<const double> noise_multipliers);
// All inspections as the account's position, which the witness remembers: each has a price of its
// own, and the witness knows no price but the last. The .cc has the grammar.
std::string EncodeInspections(std::span<const double> noise_multipliers);
// Nothing if these are no inspections.
std::optional<std::vector<double>> DecodeInspections(std::string_view position);

// FOLDER-witness/NAME.witness, beside a store at FOLDER/NAME.
std::string WitnessOfNew(const std::string& store);

// Charges the store, on disk and witnessed when it returns: even if the process ends then,
// the inspection is paid for. Later inspections compose with it, and so do the steps of
// every learner. kRefused: the store's total budget would be passed, or its inspections are charged
// at another delta. kUnavailable: another process works in the store.
Result<ChargedInspection> ChargeInspection(const Inspection& inspection);

}  // namespace tacit::wiring
