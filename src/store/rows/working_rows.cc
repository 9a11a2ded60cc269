#include "store/rows/working_rows.h"

#include <algorithm>

#include "store/rows/row_arrival.h"

namespace tacit::store {

// Brings the rows at once, and changes them here, a piece at a time.
Status WorkingRows::Expect(const std::shared_ptr<RowArrival>& arrival) {
  constexpr size_t kPieceRows = 1 << 14;
  TACIT_RETURN_IF_ERROR(arrival->Complete());
  const std::shared_ptr<const RowDelta> delta = RowArrival::Rows(arrival);
  std::vector<float*> at;
  for (size_t begin = 0; begin < delta->size(); begin += kPieceRows) {
    const auto rows = std::span<const uint64_t>(delta->rows)
                          .subspan(begin, std::min(kPieceRows, delta->size() - begin));
    at.resize(rows.size());
    TACIT_RETURN_IF_ERROR(Gather(rows, at));
    for (size_t i = 0; i < rows.size(); ++i) std::ranges::copy(delta->Row(begin + i), at[i]);
    MarkChanged(rows);
  }
  return {};
}

}  // namespace tacit::store
