// Fuzzes the bytes of a part's sums. Bytes that are read have one form, and add up.
#include <utility>

#include "fuzz.h"
#include "mechanism/partial_sums.h"
#include "support/part_query.h"

namespace tacit::mechanism {
namespace {

void ReadPart(std::string_view bytes) {
  const PartialSums none(testing::kPartOptions, testing::kPartTables);
  RowSums open(testing::kPartOptions, testing::kPartTables);
  PartialSums part = none;
  const Status read = part.AddBytes(bytes, &open);
  fuzz::DemandGoodError(read);
  part.Add(PartialSums(std::move(open)));
  if (!read) {
    fuzz::Demand(part.Encode() == none.Encode(), "nothing is added of bytes that are refused");
    return;
  }
  fuzz::Demand(part.Encode() == bytes, "a part has one form");
  PartialSums twice = part;
  twice.Add(part);
  // The same sums, the long way: through an array of all rows.
  PartialSums again{PartialSums(part).Open()};
  fuzz::Demand(again.Encode() == bytes, "sums that were open are the same");
  again.Add(part);
  fuzz::Demand(again.Encode() == twice.Encode(), "sums add up in both forms");
}

}  // namespace
}  // namespace tacit::mechanism

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tacit::mechanism::ReadPart(tacit::fuzz::TextOf(data, size));
  return 0;
}
