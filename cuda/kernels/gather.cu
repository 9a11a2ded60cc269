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
#include "cuda/kernels/number.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kColumns = 64, kRows = 4;
constexpr uint32_t kGridRowsMax = 65535;

template <class T>
TACIT_KERNEL GatherSumKernel(GatherInput from, DeviceMatrix<T> x) {
  const uint32_t c = BlockIndex().x * kColumns + ThreadIndex().x;
  if (c >= x.cols) return;
  const auto embedded = static_cast<uint32_t>(from.slot_of.size);
  const bool embeds = c < embedded, is_number = !embeds && c < embedded + from.numbers.cols;
  const uint32_t s = embeds ? from.slot_of[c] : 0;
  const DeviceSlot slot = embeds ? from.slots[s] : DeviceSlot();
  for (uint32_t r = BlockIndex().y * kRows + ThreadIndex().y; r < x.rows;
       r += GridSize().y * kRows) {
    const uint64_t example = uint64_t{from.first_example} + r;
    float sum = is_number ? from.numbers.Row(example)[c - embedded] : (embeds ? 0.0f : 1.0f);
    if (embeds) {
      const uint64_t cell = example * from.slots.size + s;
      const uint32_t first = cell == 0 ? 0 : from.cell_end[cell - 1], last = from.cell_end[cell];
      for (uint32_t e = first; e < last; ++e) {
        const uint32_t place = from.name[e];
        const DeviceGuests& guests = from.guests;
        const float* const row = place >= guests.first
                                     ? guests.rows + uint64_t{place - guests.first} * guests.stride
                                     : slot.rows + (place - slot.first) * slot.stride;
        const float number = row[c - slot.column];
        // The first is copied, not added to a zero, as on the CPU: -0 stays what it is.
        sum = e == first ? number : sum + number;
      }
    }
    Narrow(sum, x.Row(r) + c);
  }
}

}  // namespace

template <class T>
Status GatherSum(Stream& stream, const GatherInput& from, DeviceMatrix<T> x) {
  TACIT_CHECK(from.cell_end.size >= (uint64_t{from.first_example} + x.rows) * from.slots.size,
              "one end per example and slot");
  const size_t columns = from.slot_of.size + from.numbers.cols;
  TACIT_CHECK(columns == x.cols || columns + 1 == x.cols, "columns that the input does not have");
  TACIT_CHECK(from.numbers.cols == 0 || from.numbers.rows >= from.first_example + x.rows);
  if (x.rows == 0 || x.cols == 0) return {};
  const uint32_t across = (x.cols + kColumns - 1) / kColumns;
  const uint32_t down = std::min((x.rows + kRows - 1) / kRows, kGridRowsMax);
  return Launch(stream, "GatherSum",
                {.grid = {across, down}, .block = {kColumns, kRows}, .shared_bytes = 0},
                GatherSumKernel<T>, from, x);
}
template Status GatherSum<float>(Stream&, const GatherInput&, DeviceMatrix<float>);
template Status GatherSum<uint16_t>(Stream&, const GatherInput&, DeviceMatrix<uint16_t>);

}  // namespace tacit::cuda
