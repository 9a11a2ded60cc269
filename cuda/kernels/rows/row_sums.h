#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/kernels/parts/matrix.h"
#include "cuda/kernels/rows/step_rows.h"

// Gradients of rows: a row's is the input gradient's columns of its slot, added in double over the
// row's entries in the unit, in order, as on the CPU (model/row_gradients.h).
namespace tacit::cuda {

// A step's entries with what was found out about them, and the part of the step that is worked on.
struct StepRows {
  StepEntries entries = {};
  DeviceSpan<const uint32_t> cell = {};  // SpreadCells
  DeviceSpan<const uint32_t> next = {};  // LinkRepeats, as is first
  DeviceSpan<const uint8_t> first = {};
  DeviceSpan<const uint32_t> place = {};  // ListTouched
  DeviceSpan<const uint8_t> kept = {};    // of places: SelectAbove
  DeviceSpan<const uint32_t> rank = {};   // of places: a kept row's number among those written
  DeviceSpan<const DeviceSlot> slots = {};
  // The first of the part's units, examples and entries; row 0 of the gradient is its first
  // example.
  uint32_t first_unit = 0, first_example = 0, first_entry = 0;
  uint32_t entries_count = 0;
  DeviceMatrix<const float> input_gradient = {};
};

// Per unit of the part: the squared norm of its gradient of kept rows, and the count of numbers in
// it.
Status RowNorms(Stream& stream, const StepRows& rows, DeviceSpan<float> squared,
                DeviceSpan<uint32_t> numbers);
// sums[rank * stride + c] += the unit's gradient times scale[example] / step, rounded once, for
// every unit of the part and kept row. `scale` is per example and equal within a unit. REQUIRES
// sums of zeros.
Status AddRowSums(Stream& stream, const StepRows& rows, DeviceSpan<const float> scale, double step,
                  uint32_t stride, DeviceSpan<int64_t> sums);

}  // namespace tacit::cuda
