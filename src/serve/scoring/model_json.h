#pragma once

#include <string>
#include <string_view>

#include "privacy/ledger.h"
#include "privacy/spent.h"
#include "store/types/snapshot.h"

// Writes the parts of answers that describe their model and its privacy cost.
namespace tacit::serve {

// The learner's total in the snapshot's ledger; zero before its first charge. Epsilon is infinite
// if the learner has no promise.
privacy::LedgerTotal TotalOf(const store::Snapshot& snapshot, const privacy::Promise& promise);
// REQUIRES a result of TotalOf. Whether its epsilon is finite.
bool IsPrivate(const privacy::LedgerTotal& total);

// Appends the shortest text that is read as this number. JSON has no infinity: it is null.
void AppendNumber(double number, std::string* out);
void AppendNumber(float number, std::string* out);
// Appends "epsilon":..,"delta":..
void AppendLoss(const privacy::LedgerTotal& total, std::string* out);
// Appends "stopped_by":.., the budget that has stopped a learner; null while it learns.
void AppendStoppedBy(privacy::Spent spent, std::string* out);
// Appends "at_most":{...}: what somebody who knows all the rest can do at most, in plain words.
void AppendAtMost(const privacy::LedgerTotal& total, std::string* out);
// Appends "version":..,"snapshot":.. and what it cost, as the parameters of the Open Inference
// Protocol, which knows texts, numbers and flags alone: without privacy there is no epsilon.
void AppendParameters(const store::Snapshot& snapshot, const privacy::Promise& promise,
                      std::string* out);
// The failure of a request for a version that is not the one served.
Error NoSuchVersion(std::string_view learner, uint64_t asked, uint64_t served);
// Appends "model":{...}, which is in every answer.
void AppendModel(const store::Snapshot& snapshot, const privacy::Promise& promise,
                 std::string* out);

}  // namespace tacit::serve
