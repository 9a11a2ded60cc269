#pragma once

#include <span>

#include "base/result.h"
#include "privacy/ledger.h"
#include "store/care/restore.h"
#include "store/store.h"
#include "wiring/restore/gap.h"

// The inspections that a lost store was charged for after a copy of it. No configuration has their
// account, so the restored store gets it from what is remembered.
namespace tacit::wiring {

struct InspectionGap {
  store::LearnerLayout layout;
  store::LearnerGap gap;  // without the learner's index
};

// Prices each inspection by the account's position, as the witness has it, or else by the ledger
// entries of the trail's later copy, or of the copy itself, and the witness' price of one more.
// kRefused: more than one has no price, or these are two stores that went different ways. REQUIRES
// steps after the copy.
Result<InspectionGap> FindInspectionGap(privacy::Unit unit, const LearnerTrail& trail,
                                        std::span<const privacy::LedgerEntry> entries_of_copy);

}  // namespace tacit::wiring
