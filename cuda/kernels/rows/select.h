#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/noise/noise.h"
#include "cuda/kernels/rows/step_rows.h"

// The choice of touched rows that a step writes. select.cu draws noise: the linker decides which
// file that is, as for noise.h.
namespace tacit::cuda {

// contributions[place of row] += steps[active rows of the unit], once for each unit and row that is
// inside (flags of entries; all where it is empty). `first` and `active` are LinkRepeats'. `steps`
// has a number for each count of active rows, 0 included. REQUIRES contributions of zeros.
Status AddContributions(Stream& stream, const StepEntries& entries, DeviceSpan<const uint32_t> cell,
                        DeviceSpan<const uint32_t> place, DeviceSpan<const uint8_t> first,
                        DeviceSpan<const uint8_t> inside, DeviceSpan<const uint32_t> active,
                        DeviceSpan<const int64_t> steps, DeviceSpan<int64_t> contributions);

// kept[place] = 1 where the row's contributions plus noise reach the threshold, and it is inside
// (flags of places; all where it is empty); 0 for places from count[0] on. A row's draw is block
// `row` of the selection's keystream: it depends on the row alone. The contributions become zeros.
Status SelectAbove(Stream& stream, DeviceSpan<const NoiseKey> key, double stddev, int64_t threshold,
                   DeviceSpan<const uint32_t> touched, DeviceSpan<const uint32_t> count,
                   DeviceSpan<const uint8_t> inside, DeviceSpan<int64_t> contributions,
                   DeviceSpan<uint8_t> kept);
// The same without a query: every touched row that is inside.
Status SelectInside(Stream& stream, DeviceSpan<const uint32_t> count,
                    DeviceSpan<const uint8_t> inside, DeviceSpan<uint8_t> kept);

}  // namespace tacit::cuda
