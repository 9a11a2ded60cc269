// The rows of a step, without a sort: an atomic minimum an entry finds each row's first one.
//   bytes:      per entry 4 read in order and 4 at a random place of `owner`, three times over;
//               LinkRepeats reads a unit's rows once for each 32 of them
//   operations: a few an entry; LinkRepeats n / 32 shuffles and comparisons a lane for a unit of n
//               entries, 26 for one example of Criteo
// Random lines of 32 bytes bound ClaimRows: 53,000 entries are 1.7 MB. Forecast: 3 us a kernel,
// most of it launch. A unit of 5,000 entries takes a warp 1 ms in LinkRepeats. Registers:
// README.md.
#include <algorithm>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/sorted.h"
#include "cuda/kernels/rows/step_rows.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128;

// The entries of a unit.
struct Range {
  uint32_t first, last;
};
TACIT_IN_KERNEL Range EntriesOf(const StepEntries& entries, uint64_t unit) {
  const auto end = [&](uint32_t example) {
    return example == 0 || entries.slots == 0
               ? 0
               : entries.cell_end[uint64_t{example} * entries.slots - 1];
  };
  return {end(unit == 0 ? 0 : entries.example_end[unit - 1]), end(entries.example_end[unit])};
}

// A warp a unit: each lane has an entry, and all of the unit's are shown to it, 32 at a time.
TACIT_KERNEL LinkKernel(StepEntries entries, DeviceSpan<const uint8_t> inside,
                        DeviceSpan<uint32_t> next, DeviceSpan<uint8_t> first,
                        DeviceSpan<uint32_t> active) {
  const uint64_t unit = GlobalThread() / kWarp;
  if (unit >= entries.example_end.size) return;
  const Range of = EntriesOf(entries, unit);
  uint32_t count = 0;
  for (uint32_t mine0 = of.first; mine0 < of.last; mine0 += kWarp) {
    const uint32_t e = mine0 + LaneIndex();
    const bool real = e < of.last;
    const uint32_t row = real ? entries.row[e] : 0;
    uint32_t later = kNone;
    bool is_first = real;
    for (uint32_t shown0 = of.first; shown0 < of.last; shown0 += kWarp) {
      const uint32_t shown = shown0 + LaneIndex();
      const uint32_t row_shown = shown < of.last ? entries.row[shown] : 0;
      const uint32_t lanes = of.last - shown0 < kWarp ? of.last - shown0 : kWarp;
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        const bool same = Shuffle(row_shown, lane) == row;
        const uint32_t other = shown0 + lane;
        if (same && other < e) is_first = false;
        if (same && other > e && later == kNone) later = other;
      }
    }
    if (real) {
      next[e] = later;
      first[e] = is_first;
    }
    count += CountBits(Ballot(is_first && (inside.size == 0 || inside[e] != 0)));
  }
  if (LaneIndex() == 0) active[unit] = count;
}

// A thread has an entry, and a cell besides.
TACIT_KERNEL ClaimKernel(DeviceSpan<const uint32_t> name, DeviceSpan<uint32_t> owner,
                         DeviceSpan<const uint32_t> cell_end, DeviceSpan<uint32_t> cell) {
  const uint64_t i = GlobalThread();
  if (i < name.size && name[i] != kNone) AtomicMin(&owner[name[i]], static_cast<uint32_t>(i));
  if (i >= cell_end.size) return;
  for (uint32_t e = i == 0 ? 0 : cell_end[i - 1]; e < cell_end[i]; ++e)
    cell[e] = static_cast<uint32_t>(i);
}
TACIT_KERNEL OwnersKernel(DeviceSpan<const uint32_t> name, DeviceSpan<const uint32_t> owner,
                          DeviceSpan<uint8_t> owns) {
  const uint64_t e = GlobalThread();
  if (e < name.size) owns[e] = name[e] != kNone && owner[name[e]] == e;
}
TACIT_KERNEL TouchedKernel(DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> name,
                           DeviceSpan<const uint32_t> owner, DeviceSpan<const uint8_t> owns,
                           DeviceSpan<const uint32_t> rank, TouchedRows touched,
                           DeviceSpan<uint32_t> place) {
  const uint64_t e = GlobalThread();
  if (e >= row.size || name[e] == kNone) return;
  const uint32_t mine = rank[owner[name[e]]];
  place[e] = mine;
  if (!owns[e]) return;
  touched.row[mine] = row[e];
  touched.name[mine] = name[e];
}
// The owner alone writes: a row has one.
TACIT_KERNEL ForgetKernel(DeviceSpan<const uint32_t> name, DeviceSpan<const uint8_t> owns,
                          DeviceSpan<uint32_t> owner) {
  const uint64_t e = GlobalThread();
  if (e < name.size && owns[e]) owner[name[e]] = kNone;
}
TACIT_KERNEL InsideKernel(DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> sorted,
                          DeviceSpan<uint8_t> inside) {
  const uint64_t i = GlobalThread();
  if (i >= row.size) return;
  const uint64_t at = FirstNotBelow(sorted, row[i]);
  inside[i] = at < sorted.size && sorted[at] == row[i];
}
TACIT_KERNEL UntouchedKernel(DeviceSpan<const uint32_t> name, DeviceSpan<const uint32_t> owner,
                             DeviceSpan<uint8_t> untouched) {
  const uint64_t i = GlobalThread();
  if (i < name.size) untouched[i] = name[i] != kNone && owner[name[i]] == kNone;
}
TACIT_KERNEL FlaggedKernel(DeviceSpan<const uint32_t> number, DeviceSpan<const uint8_t> flags,
                           DeviceSpan<const uint32_t> rank, DeviceSpan<uint32_t> out) {
  const uint64_t i = GlobalThread();
  if (i < number.size && flags[i]) out[rank[i]] = number[i];
}
TACIT_KERNEL FlaggedRowsKernel(DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> name,
                               DeviceSpan<const uint8_t> flags, DeviceSpan<const uint32_t> rank,
                               TouchedRows out) {
  const uint64_t i = GlobalThread();
  if (i >= row.size || !flags[i]) return;
  out.row[rank[i]] = row[i];
  out.name[rank[i]] = name[i];
}

runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

}  // namespace

Status LinkRepeats(Stream& stream, const StepEntries& entries, DeviceSpan<const uint8_t> inside,
                   DeviceSpan<uint32_t> next, DeviceSpan<uint8_t> first,
                   DeviceSpan<uint32_t> active) {
  const size_t n = entries.row.size;
  TACIT_CHECK(next.size == n && first.size == n && (inside.size == 0 || inside.size == n) &&
              active.size == entries.example_end.size);
  return Launch(stream, "LinkRepeats", Threads(active.size * kWarp), LinkKernel, entries, inside,
                next, first, active);
}

Status ClaimRows(Stream& stream, const StepEntries& entries, DeviceSpan<const uint32_t> name,
                 DeviceSpan<uint32_t> owner, DeviceSpan<uint32_t> cell) {
  TACIT_CHECK(cell.size == entries.row.size && name.size == cell.size, "one cell per entry");
  return Launch(stream, "ClaimRows", Threads(std::max(name.size, entries.cell_end.size)),
                ClaimKernel, name, owner, entries.cell_end, cell);
}
Status MarkOwners(Stream& stream, DeviceSpan<const uint32_t> name, DeviceSpan<const uint32_t> owner,
                  DeviceSpan<uint8_t> owns) {
  TACIT_CHECK(owns.size == name.size);
  return Launch(stream, "MarkOwners", Threads(name.size), OwnersKernel, name, owner, owns);
}
Status ListTouched(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> name,
                   DeviceSpan<const uint32_t> owner, DeviceSpan<const uint8_t> owns,
                   DeviceSpan<const uint32_t> rank, const TouchedRows& touched,
                   DeviceSpan<uint32_t> place) {
  const size_t n = row.size;
  TACIT_CHECK(name.size == n && owns.size == n && rank.size == n && touched.row.size == n &&
              touched.name.size == n && place.size == n);
  return Launch(stream, "ListTouched", Threads(n), TouchedKernel, row, name, owner, owns, rank,
                touched, place);
}
Status ForgetTouched(Stream& stream, DeviceSpan<const uint32_t> name,
                     DeviceSpan<const uint8_t> owns, DeviceSpan<uint32_t> owner) {
  TACIT_CHECK(owns.size == name.size);
  return Launch(stream, "ForgetTouched", Threads(name.size), ForgetKernel, name, owns, owner);
}
Status FindInside(Stream& stream, DeviceSpan<const uint32_t> row, DeviceSpan<const uint32_t> sorted,
                  DeviceSpan<uint8_t> inside) {
  TACIT_CHECK(inside.size == row.size);
  return Launch(stream, "FindInside", Threads(row.size), InsideKernel, row, sorted, inside);
}
Status MarkUntouched(Stream& stream, DeviceSpan<const uint32_t> name,
                     DeviceSpan<const uint32_t> owner, DeviceSpan<uint8_t> untouched) {
  TACIT_CHECK(untouched.size == name.size);
  return Launch(stream, "MarkUntouched", Threads(name.size), UntouchedKernel, name, owner,
                untouched);
}
Status ListFlagged(Stream& stream, DeviceSpan<const uint32_t> number,
                   DeviceSpan<const uint8_t> flags, DeviceSpan<const uint32_t> rank,
                   DeviceSpan<uint32_t> out) {
  TACIT_CHECK(flags.size == number.size && rank.size == number.size);
  return Launch(stream, "ListFlagged", Threads(number.size), FlaggedKernel, number, flags, rank,
                out);
}
Status ListFlaggedRows(Stream& stream, DeviceSpan<const uint32_t> row,
                       DeviceSpan<const uint32_t> name, DeviceSpan<const uint8_t> flags,
                       DeviceSpan<const uint32_t> rank, const TouchedRows& out) {
  TACIT_CHECK(flags.size == row.size && rank.size == row.size && name.size == row.size);
  return Launch(stream, "ListFlaggedRows", Threads(row.size), FlaggedRowsKernel, row, name, flags,
                rank, out);
}

}  // namespace tacit::cuda
