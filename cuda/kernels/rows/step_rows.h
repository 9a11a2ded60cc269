#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/rows/ranks.h"

// The rows that a step touches, without sorting: a touched row's place is its rank among the rows
// in the order in which the step's entries first name them. `name` is a row's name on the device
// (row_places.h), different for different rows of a step.
namespace tacit::cuda {

// A step's entries, as the feed cuts them. Behind them there may be entries, cells, examples and
// units that fill a launch up and are nobody's: their row, name and unit is kNone, and what comes
// behind an end ends there as well.
struct StepEntries {
  uint32_t slots = 0;                           // per example
  DeviceSpan<const uint32_t> cell_end = {};     // examples x slots: end of the cell's entries
  DeviceSpan<const uint32_t> unit_of = {};      // per example, ascending
  DeviceSpan<const uint32_t> example_end = {};  // per unit: end of its examples
  DeviceSpan<const uint32_t> row = {};          // per entry
};

// Per entry, within its unit: next[e] = the next entry of the same row, or kNone; first[e] = 1 if
// none comes before it. active[u] = how many different rows the unit has that are `inside`, a flag
// an entry; all are where it is empty.
Status LinkRepeats(Stream& stream, const StepEntries& entries, DeviceSpan<const uint8_t> inside,
                   DeviceSpan<uint32_t> next, DeviceSpan<uint8_t> first,
                   DeviceSpan<uint32_t> active);

// owner[name] = the first entry of the row with that name, for rows that the step touches. It has a
// number for each name, kNone before; ForgetTouched makes it so again. cell[e] = the cell of entry
// e.
Status ClaimRows(Stream& stream, const StepEntries& entries, DeviceSpan<const uint32_t> name,
                 DeviceSpan<uint32_t> owner, DeviceSpan<uint32_t> cell);
// owns[e] = 1 where entry e is its row's owner.
Status MarkOwners(Stream& stream, DeviceSpan<const uint32_t> name, DeviceSpan<const uint32_t> owner,
                  DeviceSpan<uint8_t> owns);
// A step's touched rows by their places: number and name.
struct TouchedRows {
  DeviceSpan<uint32_t> row = {}, name = {};
};
// From the ranks of those flags: touched.row[place], touched.name[place] = the row, place[e] = the
// place of entry e's row.
Status ListTouched(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> name,
                   DeviceSpan<const uint32_t> owner, DeviceSpan<const uint8_t> owns,
                   DeviceSpan<const uint32_t> rank, const TouchedRows& touched,
                   DeviceSpan<uint32_t> place);
Status ForgetTouched(Stream& stream, DeviceSpan<const uint32_t> name,
                     DeviceSpan<const uint8_t> owns, DeviceSpan<uint32_t> owner);

// inside[i] = 1 where row[i] is one of `sorted`, ascending.
Status FindInside(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> sorted,
                  DeviceSpan<uint8_t> inside);
// untouched[i] = 1 where no entry is of the row with name[i].
Status MarkUntouched(Stream& stream, DeviceSpan<const uint32_t> name,
                     DeviceSpan<const uint32_t> owner, DeviceSpan<uint8_t> untouched);
// out[rank[i]] = number[i] where the flag is set.
Status ListFlagged(Stream& stream, DeviceSpan<const uint32_t> number,
                   DeviceSpan<const uint8_t> flags, DeviceSpan<const uint32_t> rank,
                   DeviceSpan<uint32_t> out);
// The same for rows' numbers and names at once.
Status ListFlaggedRows(Stream& stream, DeviceSpan<const uint32_t> row,
                       DeviceSpan<const uint32_t> name, DeviceSpan<const uint8_t> flags,
                       DeviceSpan<const uint32_t> rank, const TouchedRows& out);

}  // namespace tacit::cuda
