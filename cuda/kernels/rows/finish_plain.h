#pragma once

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/row_places.h"
#include "cuda/kernels/rows/finish.h"

// The last kernels of a step without privacy (mechanism::Recipe::is_private). They draw nothing.
namespace tacit::cuda {

// Steps a part of the parameters by factor * sums.
Status FinishDensePlain(Stream& stream, double factor, DeviceSpan<const OptimizerRule> rule,
                        const DensePart& part, DeviceSpan<const float> sums,
                        const DenseParameters& parameters);
// Steps the written rows, all of which have sums, by scale * sums.
Status FinishRowsPlain(Stream& stream, double scale, DeviceSpan<const OptimizerRule> rule,
                       const RowPlaces& places, const WrittenRows& written, const RowSums& sums);

}  // namespace tacit::cuda
