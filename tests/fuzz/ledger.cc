// Fuzzes what a ledger is read from: entries as they travel, and the state beside them.
#include "privacy/ledger.h"

#include "fuzz.h"

namespace tacit {
namespace {

void ReadEntry(std::string_view bytes) {
  const auto entry = privacy::LedgerEntry::Decode(bytes);
  fuzz::DemandGoodError(entry);
  if (!entry) return;
  // One text has one form: else two stores with the same head could differ.
  fuzz::Demand(entry->Encode() == bytes, "an entry is encoded as it was read");
  // A chain of this entry alone, with the head that it should have.
  privacy::LedgerEntry linked = *entry;
  linked.index = 0;
  linked.previous_head = {};
  linked.head = linked.ComputeHead();
  fuzz::DemandGoodError(privacy::VerifyChain({{linked}}));
}

void ReadState(std::string_view bytes) {
  fuzz::DemandGoodError(privacy::Ledger::ReadPromises(bytes));
  const auto ledger = privacy::Ledger::Restore({}, bytes);
  fuzz::DemandGoodError(ledger);
  if (ledger) (void)ledger->Total();
}

}  // namespace
}  // namespace tacit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes = tacit::fuzz::TextOf(data, size);
  if (tacit::fuzz::TakeChoice(&bytes) % 2 == 0)
    tacit::ReadEntry(bytes);
  else
    tacit::ReadState(bytes);
  return 0;
}
