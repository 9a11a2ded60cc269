#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"
#include "cuda/kernels/parts/row_places.h"

namespace tacit::cuda {

// The table of a slot, as it lies on the device, and its columns of the model's input.
struct DeviceSlot {
  const float* rows = nullptr;  // the embedding in the table's first place
  uint64_t stride = 0;          // in floats, from one place to the next
  uint64_t first = 0;           // the name of the first place
  uint32_t dim = 0;
  uint32_t column = 0;
};

// The parts that the inputs of a model are made of.
struct GatherInput {
  DeviceSpan<const DeviceSlot> slots = {};
  DeviceGuests guests = {};
  DeviceSpan<const uint32_t> slot_of = {};   // the slot of each column
  DeviceSpan<const uint32_t> cell_end = {};  // per example and slot, as in StepEntries
  DeviceSpan<const uint32_t> name = {};      // per entry: the name of its row
  DeviceMatrix<const float> numbers = {};    // per example
  uint32_t first_example = 0;                // that of row 0
  bool has_fours = false;                    // all dims are multiples of four
};

// For every example r and slot s: x[r, column .. + dim] = the sum of the embeddings of the slot's
// entries, in order; behind them the example's numbers, and 1 in a column more, if x has one. Row r
// of x is example first_example + r; entries of its cell, example * slots + s, end at cell_end. T
// is float or uint16_t, a bf16.
template <class T>
Status GatherSum(Stream& stream, const GatherInput& from, DeviceMatrix<T> x);

}  // namespace tacit::cuda
