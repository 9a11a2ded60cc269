// Sums of embedding rows, a thread a column of the model's input, or four of them where no slot's
// dims are others than multiples of four: threads of a slot read its row side by side.
//   bytes:      4 a number of a row read, at random rows but in pieces of 4 dim; 4 written; 4 an
//   entry operations: one addition a number
// Memory bounds it. Measured on an H200 with the look-up before it: 64 % of a copy of the bytes
// that must move, at dim 64 by fours. Registers: README.md.
#include <algorithm>

#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/kernels/parts/number.h"
#include "cuda/kernels/parts/vector.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kColumns = 64, kBlock = 256;
constexpr uint32_t kAtOnce = 4;  // rows of a thread: their loads are under way together
// More blocks than work at a time would begin in vain: each reads its slot first.
constexpr uint32_t kBlocksMost = 2048;

// The columns `c` to c + kEach of the row with this name.
template <uint32_t kEach>
TACIT_IN_KERNEL Vector<float, kEach> NumbersOf(const GatherInput& from, const DeviceSlot& slot,
                                               uint32_t name, uint32_t c) {
  const DeviceGuests& guests = from.guests;
  const float* const row = name >= guests.first
                               ? guests.rows + uint64_t{name - guests.first} * guests.stride
                               : slot.rows + (name - slot.first) * slot.stride;
  return LoadVector<kEach>(row + (c - slot.column), kEach);
}

// The entries of kAtOnce cells, and the names of the first ones.
struct Cells {
  uint32_t first[kAtOnce], last[kAtOnce], name[kAtOnce];
};

// A thread has kEach neighbouring columns, which are of one slot if they are of any.
template <class T, uint32_t kEach>
TACIT_KERNEL GatherSumKernel(GatherInput from, DeviceMatrix<T> x) {
  constexpr uint32_t kRows = kBlock / (kColumns / kEach);
  using Numbers = Vector<float, kEach>;
  const uint32_t c = BlockIndex().x * kColumns + ThreadIndex().x * kEach;
  if (c >= x.cols) return;
  const auto embedded = static_cast<uint32_t>(from.slot_of.size);
  const bool embeds = c < embedded;
  const uint32_t s = embeds ? from.slot_of[c] : 0;
  const DeviceSlot slot = embeds ? from.slots[s] : DeviceSlot();
  const uint64_t stride = GridSize().y * kRows;
  // Cells of rows r0, r0 + stride, ...
  const auto look = [&](uint64_t r0) {
    Cells cells = {};
    TACIT_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint64_t r = r0 + i * stride;
      if (!embeds || r >= x.rows) continue;
      const uint64_t cell = (from.first_example + r) * from.slots.size + s;
      cells.first[i] = cell == 0 ? 0 : from.cell_end[cell - 1];
      cells.last[i] = from.cell_end[cell];
    }
    TACIT_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i)
      if (cells.first[i] < cells.last[i]) cells.name[i] = from.name[cells.first[i]];
    return cells;
  };
  uint64_t r0 = BlockIndex().y * kRows + ThreadIndex().y;
  Cells cells = look(r0);
  while (r0 < x.rows) {
    Numbers sum[kAtOnce];
    // The first is copied, not added to a zero, as on the CPU: -0 stays what it is.
    TACIT_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint64_t r = r0 + i * stride;
      sum[i] = {};
      if (!embeds && r < x.rows) {
        TACIT_UNROLL
        for (uint32_t j = 0; j < kEach; ++j)
          sum[i].x[j] = c + j - embedded < from.numbers.cols
                            ? from.numbers.Row(from.first_example + r)[c + j - embedded]
                            : 1.0f;
      }
      if (cells.first[i] < cells.last[i]) sum[i] = NumbersOf<kEach>(from, slot, cells.name[i], c);
    }
    const uint64_t next = r0 + kAtOnce * stride;
    const Cells after = next < x.rows ? look(next) : Cells();
    TACIT_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      for (uint32_t e = cells.first[i] + 1; e < cells.last[i]; ++e) {
        const Numbers more = NumbersOf<kEach>(from, slot, from.name[e], c);
        TACIT_UNROLL
        for (uint32_t j = 0; j < kEach; ++j) sum[i].x[j] += more.x[j];
      }
      const uint64_t r = r0 + i * stride;
      if (r >= x.rows) continue;
      Vector<T, kEach> out;
      TACIT_UNROLL
      for (uint32_t j = 0; j < kEach; ++j) Narrow(sum[i].x[j], &out.x[j]);
      StoreVector(out, x.cols - c, x.Row(r) + c);
    }
    r0 = next;
    cells = after;
  }
}

template <class T, uint32_t kEach>
Status LaunchGather(Stream& stream, const GatherInput& from, DeviceMatrix<T> x) {
  constexpr uint32_t kThreads = kColumns / kEach, kRows = kBlock / kThreads;
  constexpr uint32_t kOfBlock = kRows * kAtOnce;
  const uint32_t across = (x.cols + kColumns - 1) / kColumns;
  const uint32_t down =
      std::min((x.rows + kOfBlock - 1) / kOfBlock, std::max(1u, kBlocksMost / across));
  return Launch(stream, "GatherSum",
                {.grid = {across, down}, .block = {kThreads, kRows}, .shared_bytes = 0},
                GatherSumKernel<T, kEach>, from, x);
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
  return from.has_fours ? LaunchGather<T, 4>(stream, from, x) : LaunchGather<T, 1>(stream, from, x);
}
template Status GatherSum<float>(Stream&, const GatherInput&, DeviceMatrix<float>);
template Status GatherSum<uint16_t>(Stream&, const GatherInput&, DeviceMatrix<uint16_t>);

}  // namespace tacit::cuda
