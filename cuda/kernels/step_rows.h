#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/ranks.h"

// The rows that a step touches, without sorting: a touched row's place is its rank among the rows
// in the order in which the step's entries first name them. Rows are named by their number in the
// space.
namespace tacit::cuda {

// A step's entries, as the feed cuts them.
struct StepEntries {
  uint32_t slots = 0;                           // per example
  DeviceSpan<const uint32_t> cell_end = {};     // examples x slots: end of the cell's entries
  DeviceSpan<const uint32_t> unit_of = {};      // per example, ascending
  DeviceSpan<const uint32_t> example_end = {};  // per unit: end of its examples
  DeviceSpan<const uint32_t> row = {};          // per entry
};

// cell[e] = the cell of entry e.
Status SpreadCells(Stream& stream, const StepEntries& entries, DeviceSpan<uint32_t> cell);

// Per entry, within its unit: next[e] = the next entry of the same row, or kNone; first[e] = 1 if
// none comes before it. active[u] = how many different rows the unit has that are `inside`, a flag
// an entry; all are where it is empty.
Status LinkRepeats(Stream& stream, const StepEntries& entries, DeviceSpan<const uint8_t> inside,
                   DeviceSpan<uint32_t> next, DeviceSpan<uint8_t> first,
                   DeviceSpan<uint32_t> active);

// owner[row] = the first entry that names the row, for rows that the step touches. It has a number
// for each row of the space, kNone before; ForgetTouched makes it so again.
Status ClaimRows(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<uint32_t> owner);
// owns[e] = 1 where entry e is its row's owner.
Status MarkOwners(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> owner,
                  DeviceSpan<uint8_t> owns);
// From the ranks of those flags: touched[place] = the row, place[e] = the place of entry e's row.
Status ListTouched(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> owner,
                   DeviceSpan<const uint8_t> owns, DeviceSpan<const uint32_t> rank,
                   DeviceSpan<uint32_t> touched, DeviceSpan<uint32_t> place);
Status ForgetTouched(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<const uint8_t> owns,
                     DeviceSpan<uint32_t> owner);

// inside[i] = 1 where row[i] is one of `sorted`, ascending.
Status FindInside(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> sorted,
                  DeviceSpan<uint8_t> inside);
// untouched[i] = 1 where no entry names row[i].
Status MarkUntouched(Stream& stream, DeviceSpan<const uint32_t> row,
                     DeviceSpan<const uint32_t> owner, DeviceSpan<uint8_t> untouched);
// out[rank[i]] = row[i] where the flag is set.
Status ListFlagged(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<const uint8_t> flags,
                   DeviceSpan<const uint32_t> rank, DeviceSpan<uint32_t> out);

}  // namespace tacit::cuda
