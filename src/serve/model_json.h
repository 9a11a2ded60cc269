#pragma once

#include <string>

#include "privacy/ledger.h"
#include "store/snapshot.h"

// Writes the parts of answers that describe their model and its privacy cost.
namespace tacit::serve {

// The learner's total in the snapshot's ledger; zero before its first charge. Epsilon is infinite
// if the learner has no promise.
privacy::LedgerTotal TotalOf(const store::Snapshot& snapshot, const privacy::Promise& promise);
// REQUIRES a result of TotalOf. Whether its epsilon is finite.
bool IsPrivate(const privacy::LedgerTotal& total);

// JSON has no infinity: an unbounded number is null.
void AppendNumber(double number, std::string* out);
// Appends "epsilon":..,"delta":..
void AppendLoss(const privacy::LedgerTotal& total, std::string* out);
// Appends "model":{...}, which is in every answer.
void AppendModel(const store::Snapshot& snapshot, const privacy::Promise& promise,
                 std::string* out);

}  // namespace tacit::serve
