#include "model/sum_blocks.h"

#include <algorithm>

#include "base/check.h"

namespace tacit::model {
namespace {

// n rows added in floats are off by n 2^-24 of their lengths, with a unit and without it. kSumError
// holds where a block's lengths in clips, times the rows of a piece, are at most this.
constexpr double kClipsTimesRows = 0x1p-7 / (2 * 0x1p-24);

// The lengths of all rows of the block's units, in clips: one each, and kRowsOverNorm for units of
// several rows.
double LengthOf(std::span<const uint32_t> unit_end, uint32_t first_row) {
  double clips = 0;
  for (const uint32_t end : unit_end) {
    const uint32_t rows = end - first_row;
    clips += rows > 1 ? kRowsOverNorm : rows;
    first_row = end;
  }
  return clips;
}

}  // namespace

void CutSums(std::span<const uint32_t> block_end, std::span<const uint32_t> unit_end,
             ops::SumPieces* pieces) {
  pieces->end.clear();
  pieces->closes.clear();
  uint32_t first = 0;
  auto unit = unit_end.begin();
  for (const uint32_t end : block_end) {
    const auto last_unit = std::upper_bound(unit, unit_end.end(), end);
    const double clips = LengthOf({unit, last_unit}, first);
    TACIT_CHECK(first == end || (last_unit != unit && *(last_unit - 1) == end),
                "a unit is in one block of the sum");
    const double rows = std::clamp(kClipsTimesRows / std::max(1.0, clips), 1.0, 1.0 * kSumRows);
    const auto each = static_cast<uint32_t>(rows);
    while (first < end) {
      first = std::min(end, first + each);
      pieces->end.push_back(first);
      pieces->closes.push_back(first == end ? 1 : 0);
    }
    unit = last_unit;
  }
}

}  // namespace tacit::model
