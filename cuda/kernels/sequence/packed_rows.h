#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/matrix.h"

// Kernels that move a sequence model's rows, which lie packed: one unit's behind the other's.
namespace tacit::cuda {

// out[r] = scale * items[item[r]] + positions[position[r]].
Status EmbedRows(Stream& stream, DeviceSpan<const uint32_t> item, DeviceMatrix<const float> items,
                 float scale, DeviceSpan<const uint32_t> position,
                 DeviceMatrix<const float> positions, DeviceMatrix<float> out);
// to += from.
Status AddMatrix(Stream& stream, DeviceMatrix<const float> from, DeviceMatrix<float> to);
// out[i] = from[row[i]].
Status TakeRows(Stream& stream, DeviceMatrix<const float> from, DeviceSpan<const uint32_t> row,
                DeviceMatrix<float> out);
// to[row[i]] = from[i], for distinct rows.
Status PutRows(Stream& stream, DeviceMatrix<const float> from, DeviceSpan<const uint32_t> row,
               DeviceMatrix<float> to);
// Norms as floats; one that is too large becomes infinite.
Status NarrowNorms(Stream& stream, DeviceSpan<const double> squared, DeviceSpan<float> out);

}  // namespace tacit::cuda
