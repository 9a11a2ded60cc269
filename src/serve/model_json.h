#pragma once

#include <string>

#include "privacy/ledger.h"
#include "store/snapshot.h"

// What answers say of the model they were made with, and of what it cost.
namespace tacit::serve {

// What the snapshot's ledger says of the learner; zero before its first charge. Epsilon is infinite
// where nothing is promised.
privacy::LedgerTotal TotalOf(const store::Snapshot& snapshot, const privacy::Promise& promise);
// Of TotalOf.
bool IsPrivate(const privacy::LedgerTotal& total);

// JSON has no infinity: an unbounded number is null.
void AppendNumber(double number, std::string* out);
// "epsilon":..,"delta":..
void AppendLoss(const privacy::LedgerTotal& total, std::string* out);
// "model":{...}, which is in every answer.
void AppendModel(const store::Snapshot& snapshot, const privacy::Promise& promise,
                 std::string* out);

}  // namespace tacit::serve
