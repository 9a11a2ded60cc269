#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/matrix.h"
#include "cuda/kernels/row_places.h"

namespace tacit::cuda {

// The table of a slot, as it lies on the device, and its columns of the model's input.
struct DeviceSlot {
  const float* rows = nullptr;  // the embedding in the table's first place
  uint64_t stride = 0;          // in floats, from one place to the next
  uint64_t first = 0;           // the name of the first place
  uint32_t dim = 0;
  uint32_t column = 0;
};

// For every example r and slot s: x[r, column .. + dim] = the sum of the embeddings of the slot's
// entries, in order. Row r of x is example first_example + r; entries of its cell, example * slots
// + s, end at cell_end. name[e] is the name of entry e's row. `slot_of` has the slot of each
// column.
Status GatherSum(Stream& stream, DeviceSpan<const DeviceSlot> slots, const DeviceGuests& guests,
                 DeviceSpan<const uint32_t> slot_of, DeviceSpan<const uint32_t> cell_end,
                 DeviceSpan<const uint32_t> name, uint32_t first_example, DeviceMatrix<float> x);

}  // namespace tacit::cuda
