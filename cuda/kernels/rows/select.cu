// Noisy counts of rows, and the rows that pass; a thread an entry or a touched row.
//   bytes:      AddContributions 21 an entry and an atomic of 8; SelectAbove 22 a row
//   operations: SelectAbove one block of ChaCha20 and a pair of normals a row: 1,100 integer and 80
//               double
// SelectAbove is bound by ChaCha20: 53,000 rows take 132 multiprocessors 4 us. Forecast for both: 8
// us. Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/noise/grid_draw.h"
#include "cuda/kernels/rows/select.h"
#include "noise/grid_gaussian.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128;

TACIT_KERNEL ContributeKernel(StepEntries entries, DeviceSpan<const uint32_t> cell,
                              DeviceSpan<const uint32_t> place, DeviceSpan<const uint8_t> first,
                              DeviceSpan<const uint8_t> inside, DeviceSpan<const uint32_t> active,
                              DeviceSpan<const int64_t> steps, DeviceSpan<int64_t> contributions) {
  const uint64_t e = GlobalThread();
  if (e >= entries.row.size || entries.row[e] == kNone || !first[e] ||
      (inside.size != 0 && !inside[e]))
    return;
  const uint32_t unit = entries.unit_of[cell[e] / entries.slots];
  AtomicAdd(&contributions[place[e]], steps[active[unit]]);
}

TACIT_KERNEL AboveKernel(const NoiseKey* key, noise::GridScale scale, int64_t threshold,
                         DeviceSpan<const uint32_t> touched, DeviceSpan<const uint32_t> count,
                         DeviceSpan<const uint8_t> inside, DeviceSpan<int64_t> contributions,
                         DeviceSpan<uint8_t> kept) {
  const uint64_t place = GlobalThread();
  if (place >= kept.size) return;
  bool keep = false;
  if (place < count[0]) {
    uint32_t words[kKeyWords];
    ReadKey(key, words);
    const int64_t noise =
        DrawOne(words, static_cast<uint64_t>(NoiseQuery::kSelection), touched[place], scale);
    const auto noisy = static_cast<int64_t>(static_cast<uint64_t>(contributions[place]) +
                                            static_cast<uint64_t>(noise));
    keep = noisy >= threshold && (inside.size == 0 || inside[place] != 0);
    contributions[place] = 0;
  }
  kept[place] = keep;
}

TACIT_KERNEL InsideKernel(DeviceSpan<const uint32_t> count, DeviceSpan<const uint8_t> inside,
                          DeviceSpan<uint8_t> kept) {
  const uint64_t place = GlobalThread();
  if (place < kept.size) kept[place] = place < count[0] && (inside.size == 0 || inside[place] != 0);
}

runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

}  // namespace

Status AddContributions(Stream& stream, const StepEntries& entries, DeviceSpan<const uint32_t> cell,
                        DeviceSpan<const uint32_t> place, DeviceSpan<const uint8_t> first,
                        DeviceSpan<const uint8_t> inside, DeviceSpan<const uint32_t> active,
                        DeviceSpan<const int64_t> steps, DeviceSpan<int64_t> contributions) {
  const size_t n = entries.row.size;
  TACIT_CHECK(cell.size == n && place.size == n && first.size == n &&
              (inside.size == 0 || inside.size == n));
  return Launch(stream, "AddContributions", Threads(n), ContributeKernel, entries, cell, place,
                first, inside, active, steps, contributions);
}

Status SelectAbove(Stream& stream, DeviceSpan<const NoiseKey> key, double stddev, int64_t threshold,
                   DeviceSpan<const uint32_t> touched, DeviceSpan<const uint32_t> count,
                   DeviceSpan<const uint8_t> inside, DeviceSpan<int64_t> contributions,
                   DeviceSpan<uint8_t> kept) {
  const size_t n = touched.size;
  TACIT_CHECK(key.size == 1 && count.size == 1 && contributions.size == n && kept.size == n &&
              (inside.size == 0 || inside.size == n));
  return Launch(stream, "SelectAbove", Threads(n), AboveKernel, key.data,
                noise::MakeGridScale(stddev, noise::DitherBits(stddev)), threshold, touched, count,
                inside, contributions, kept);
}

Status SelectInside(Stream& stream, DeviceSpan<const uint32_t> count,
                    DeviceSpan<const uint8_t> inside, DeviceSpan<uint8_t> kept) {
  TACIT_CHECK(count.size == 1 && (inside.size == 0 || inside.size == kept.size));
  return Launch(stream, "SelectInside", Threads(kept.size), InsideKernel, count, inside, kept);
}

}  // namespace tacit::cuda
