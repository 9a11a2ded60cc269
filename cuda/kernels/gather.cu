// Sums of embedding rows, a thread a column of the model's input: threads of a slot read its row
// side by side.
//   bytes:      4 a number of a row read, at random rows but in pieces of 4 dim; 4 written; 4 an
//   entry operations: one addition a number
// Memory bounds it. Forecast: 60 % of the copy bandwidth at dim 64, less at 16, where a row is half
// a line of 128 bytes. Registers: README.md.
#include <algorithm>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/gather.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kColumns = 64, kRows = 4;
constexpr uint32_t kGridRowsMax = 65535;

TACIT_KERNEL GatherSumKernel(DeviceSpan<const DeviceSlot> slots, DeviceGuests guests,
                             DeviceSpan<const uint32_t> slot_of,
                             DeviceSpan<const uint32_t> cell_end, DeviceSpan<const uint32_t> name,
                             uint32_t first_example, DeviceMatrix<float> x) {
  const uint32_t c = BlockIndex().x * kColumns + ThreadIndex().x;
  if (c >= slot_of.size) return;
  const uint32_t s = slot_of[c];
  const DeviceSlot slot = slots[s];
  for (uint32_t r = BlockIndex().y * kRows + ThreadIndex().y; r < x.rows;
       r += GridSize().y * kRows) {
    const uint64_t cell = (uint64_t{first_example} + r) * slots.size + s;
    const uint32_t first = cell == 0 ? 0 : cell_end[cell - 1], last = cell_end[cell];
    float sum = 0;
    for (uint32_t e = first; e < last; ++e) {
      const uint32_t place = name[e];
      const float* const from = place >= guests.first
                                    ? guests.rows + uint64_t{place - guests.first} * guests.stride
                                    : slot.rows + (place - slot.first) * slot.stride;
      const float number = from[c - slot.column];
      // The first is copied, not added to a zero, as on the CPU: -0 stays what it is.
      sum = e == first ? number : sum + number;
    }
    x.Row(r)[c] = sum;
  }
}

}  // namespace

Status GatherSum(Stream& stream, DeviceSpan<const DeviceSlot> slots, const DeviceGuests& guests,
                 DeviceSpan<const uint32_t> slot_of, DeviceSpan<const uint32_t> cell_end,
                 DeviceSpan<const uint32_t> name, uint32_t first_example, DeviceMatrix<float> x) {
  TACIT_CHECK(cell_end.size >= (uint64_t{first_example} + x.rows) * slots.size,
              "one end per example and slot");
  TACIT_CHECK(slot_of.size <= x.cols, "columns that the input does not have");
  if (x.rows == 0 || slot_of.size == 0) return {};
  const auto across = static_cast<uint32_t>((slot_of.size + kColumns - 1) / kColumns);
  const uint32_t down = std::min((x.rows + kRows - 1) / kRows, kGridRowsMax);
  return Launch(stream, "GatherSum",
                {.grid = {across, down}, .block = {kColumns, kRows}, .shared_bytes = 0},
                GatherSumKernel, slots, guests, slot_of, cell_end, name, first_example, x);
}

}  // namespace tacit::cuda
