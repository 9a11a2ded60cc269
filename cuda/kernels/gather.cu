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
constexpr uint32_t kAtOnce = 4;  // rows of a thread: their loads are under way together
constexpr uint32_t kGridRowsMax = 65535;

// The float of column `c` of the row with this name.
TACIT_IN_KERNEL float NumberOf(const GatherInput& from, const DeviceSlot& slot, uint32_t name,
                               uint32_t c) {
  const DeviceGuests& guests = from.guests;
  const float* const row = name >= guests.first
                               ? guests.rows + uint64_t{name - guests.first} * guests.stride
                               : slot.rows + (name - slot.first) * slot.stride;
  return row[c - slot.column];
}

template <class T>
TACIT_KERNEL GatherSumKernel(GatherInput from, DeviceMatrix<T> x) {
  const uint32_t c = BlockIndex().x * kColumns + ThreadIndex().x;
  if (c >= x.cols) return;
  const auto embedded = static_cast<uint32_t>(from.slot_of.size);
  const bool embeds = c < embedded, is_number = !embeds && c < embedded + from.numbers.cols;
  const uint32_t s = embeds ? from.slot_of[c] : 0;
  const DeviceSlot slot = embeds ? from.slots[s] : DeviceSlot();
  const uint32_t stride = GridSize().y * kRows;
  for (uint32_t r0 = BlockIndex().y * kRows + ThreadIndex().y; r0 < x.rows; r0 += kAtOnce * stride) {
    float sum[kAtOnce];
    uint32_t first[kAtOnce], last[kAtOnce], name[kAtOnce] = {};
    TACIT_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t r = r0 + i * stride;
      first[i] = last[i] = 0;
      sum[i] = embeds ? 0.0f : 1.0f;
      if (r >= x.rows) continue;
      const uint64_t example = uint64_t{from.first_example} + r;
      if (is_number) sum[i] = from.numbers.Row(example)[c - embedded];
      if (!embeds) continue;
      const uint64_t cell = example * from.slots.size + s;
      first[i] = cell == 0 ? 0 : from.cell_end[cell - 1];
      last[i] = from.cell_end[cell];
    }
    TACIT_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i)
      if (first[i] < last[i]) name[i] = from.name[first[i]];
    // The first is copied, not added to a zero, as on the CPU: -0 stays what it is.
    TACIT_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i)
      if (first[i] < last[i]) sum[i] = NumberOf(from, slot, name[i], c);
    TACIT_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      for (uint32_t e = first[i] + 1; e < last[i]; ++e)
        sum[i] += NumberOf(from, slot, from.name[e], c);
      const uint32_t r = r0 + i * stride;
      if (r < x.rows) Narrow(sum[i], x.Row(r) + c);
    }
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
  constexpr uint32_t kOfBlock = kRows * kAtOnce;
  const uint32_t down = std::min((x.rows + kOfBlock - 1) / kOfBlock, kGridRowsMax);
  return Launch(stream, "GatherSum",
                {.grid = {across, down}, .block = {kColumns, kRows}, .shared_bytes = 0},
                GatherSumKernel<T>, from, x);
}
template Status GatherSum<float>(Stream&, const GatherInput&, DeviceMatrix<float>);
template Status GatherSum<uint16_t>(Stream&, const GatherInput&, DeviceMatrix<uint16_t>);

}  // namespace tacit::cuda
